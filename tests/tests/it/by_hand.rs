//! A trainer gives the same result as a plain loop over the loader's batches.

use brisk_loader::{RowBuffers, RowSelection, RowSource, Shuffle};
use brisk_nn::tensor::{DType, Graph, Persistent, Reduction};
use brisk_nn::{Optimizer, Schedule, StepInputs};
use brisk_program::Device;
use brisk_train::{Error, Standardisation, TrainerConfig};

use crate::gpu::cpu;
use crate::run::{N_COLS, Ready, Setting, history};

const BATCH: usize = 47;
const EPOCHS: usize = 4;
const SCHEDULE: Schedule = Schedule::CosineAnnealing { lr: 5e-3, t_max: brisk_nn::Steps::Count(40), eta_min: 1e-4 };

/// Gathers each batch on the host, standardises it there, and takes one step. Returns the parameters and the mean loss after each
/// epoch.
fn plain_loop(ready: &Ready, scale: &Standardisation, device: &Device, seed: u64) -> Result<Vec<(Vec<f32>, f64)>, Error> {
    let Ready { model, params, adam, train, .. } = ready;
    let n_rows = train.n_rows();
    let f32s = |name, len| Persistent::new(name, DType::F32, len);
    let (x, labels, weights) = (f32s("x", BATCH * N_COLS), f32s("labels", BATCH), f32s("weights", BATCH));
    let inputs = StepInputs { lr: f32s("lr", 1), state: Graph::state_buffer() };
    let losses = f32s("loss", 1);

    let graph = Graph::training("plain");
    let logits = model.forward(&params.bind(&graph), &graph.tensor(&x, &[BATCH, N_COLS]));
    let (t, w) = (graph.tensor(&labels, &[BATCH]), graph.tensor(&weights, &[BATCH]));
    let loss = logits.bce_with_logits(&t, &w, Reduction::Mean, 1.0);
    graph.backward(&loss)?;
    adam.record(&graph, params, &inputs);
    graph.store(&loss, &inputs.state, &losses);
    graph.hold(&inputs.state); // the host writes it
    let step = graph.compile(device)?;
    params.write_initial(device)?;

    let (mut n_steps, mut epochs) = (0, Vec::new());
    for epoch in 0..EPOCHS {
        let shuffle = Shuffle::new(n_rows as u32, seed, epoch as u32);
        let order: Vec<u32> = (0..n_rows as u32).map(|position| shuffle.row(position)).collect();
        let mut sum = 0.0;
        for rows in order.chunks(BATCH) {
            let (mut features, mut targets) = (vec![0.0; BATCH * N_COLS], vec![0.0; BATCH]);
            train
                .gather(
                    RowSelection::Numbers(rows),
                    RowBuffers::new(&mut features[..rows.len() * N_COLS], &mut targets[..rows.len()]),
                )
                .expect("these rows are there");
            for row in features.chunks_mut(N_COLS).take(rows.len()) {
                for ((x, mean), inv_std) in row.iter_mut().zip(scale.mean()).zip(scale.inv_std()) {
                    *x = (*x - mean) * inv_std;
                }
            }
            let is_row: Vec<f32> = (0..BATCH).map(|slot| f32::from(u8::from(slot < rows.len()))).collect();
            device.write(&x, &features)?;
            device.write(&labels, &targets)?;
            device.write(&weights, &is_row)?;
            device.write(&inputs.lr, &[SCHEDULE.rate(n_steps, 40) as f32])?;
            device.write(&inputs.state, &[0, n_steps as u32, 0, 0])?;
            step.run(1)?;
            sum += f64::from(device.read::<f32>(&losses)?[0]) * rows.len() as f64;
            n_steps += 1;
        }
        epochs.push((device.read(params.values())?, sum / n_rows as f64));
    }
    Ok(epochs)
}

#[test]
fn a_trainer_is_a_plain_loop_over_the_loaders_batches() -> Result<(), Error> {
    let default = Setting::default();
    let config = TrainerConfig { batch_rows: BATCH, max_epochs: EPOCHS, schedule: SCHEDULE, ..default.config };
    let setting = Setting { n_rows: 400, hidden: vec![17, 9], seed: 8, config, ..default };
    let (device, ready) = (cpu(2), setting.ready());
    let trainer = ready.trainer(&device)?;
    let report = trainer.fit(&mut crate::run::quiet())?;
    let found: Vec<f32> = device.read(ready.params.values())?;

    let expected = plain_loop(&setting.ready(), trainer.scale(), &cpu(2), 8)?;
    for (epoch, ((loss, _), (_, expected))) in history(&report).iter().zip(&expected).enumerate() {
        assert!((loss - expected).abs() <= 1e-6, "epoch {}: the loss is {loss}, by hand {expected}", epoch + 1);
    }
    assert!(report.best_epoch > 1, "the first epoch would not show whether Adam's count of steps continues");
    let expected = &expected[report.best_epoch - 1].0;
    let furthest = found.iter().zip(expected).fold(0.0_f32, |furthest, (a, b)| furthest.max((a - b).abs()));
    assert!(furthest <= 1e-6, "a parameter is {furthest} away from where it is by hand");
    Ok(())
}

#[test]
fn columns_are_standardised_by_the_training_rows() -> Result<(), Error> {
    let (device, ready) = (cpu(1), Setting::default().ready());
    let trainer = ready.trainer(&device)?;
    let n = ready.train.n_rows();
    for col in 0..N_COLS {
        let column: Vec<f64> = (0..n).map(|row| f64::from(ready.train.features()[row * N_COLS + col])).collect();
        let mean = column.iter().sum::<f64>() / n as f64;
        let deviation = (column.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        let (found_mean, found_inv_std) = (trainer.scale().mean()[col], trainer.scale().inv_std()[col]);
        assert!(
            (f64::from(found_mean) - mean).abs() <= 1e-6 * (1.0 + mean.abs()),
            "column {col}: mean {found_mean}, {mean} by hand"
        );
        let off = (f64::from(found_inv_std) * deviation - 1.0).abs();
        assert!(off <= 1e-6, "column {col}: 1/{found_inv_std}, a deviation of {deviation} by hand");
    }
    Ok(())
}
