//! Steps whose rows all have weight 0: they are skipped, as if their batches did not exist.

use brisk_loader::{Order, RowSource, Rows};
use brisk_nn::tensor::Precision;
use brisk_nn::{Adam, Lookahead, Momentum, Optimizer, Parameters, Sgd, WeightDecay};
use brisk_program::Device;
use brisk_train::{
    Binary, Checkpoint, DataParallel, DataParallelConfig, Error, FeedConfig, GradientClip, Limit, RunFolder, Standardisation,
    TensorData, Trainable, Trainer, TrainerConfig, ZeroStage, run_threads,
};

use crate::gpu::{cpu, gpu};
use crate::replicas::CONFIG;
use crate::run::{N_COLS, Setting, into_folder, rows};

const BATCH_ROWS: usize = 32;

/// The weights of the rows of a batch.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Batch {
    /// Different ones.
    Weighted,
    /// 0 for all.
    Weightless,
    /// 0 for the first half, which is the part of the first of two replicas.
    SecondHalf,
}

use Batch::{SecondHalf, Weighted, Weightless};

/// Batches of rows in order; those at the `left_out` positions are omitted.
fn batches(batches: &[Batch], left_out: &[usize]) -> Rows {
    let all = rows(0, BATCH_ROWS * batches.len());
    let (mut features, mut labels, mut weights) = (Vec::new(), Vec::new(), Vec::new());
    for (at, batch) in batches.iter().enumerate().filter(|(at, _)| !left_out.contains(at)) {
        let of_batch = at * BATCH_ROWS..(at + 1) * BATCH_ROWS;
        features.extend_from_slice(&all.features()[of_batch.start * N_COLS..of_batch.end * N_COLS]);
        labels.extend_from_slice(&all.labels()[of_batch]);
        weights.extend((0..BATCH_ROWS).map(|row| match batch {
            Weightless => 0.0,
            SecondHalf if row < BATCH_ROWS / 2 => 0.0,
            Weighted | SecondHalf => 0.5 + (row % 3) as f32,
        }));
    }
    Rows::new(features, labels, N_COLS).and_then(|rows| rows.with_weights(weights)).expect("a weight a row")
}

fn config(precision: Precision) -> TrainerConfig {
    let ema = Some(0.9.into());
    TrainerConfig { batch_rows: BATCH_ROWS, max_epochs: 2, precision, ema, ..Setting::default().config }
}

fn adamw(params: &Parameters) -> Box<dyn Optimizer> {
    Box::new(Adam::new(params).weight_decay(WeightDecay::Decoupled(0.1)))
}

/// Slow weights after every third step that is not skipped.
fn lookahead(params: &Parameters) -> Box<dyn Optimizer> {
    let sgd = Sgd::new(params).momentum(0.9, Momentum::Nesterov).weight_decay(0.1);
    Box::new(Lookahead::new(sgd, params, 3, vec![0.5]))
}

/// The checkpoint after the last epoch of a run over `train` in order: parameters, moments, averages, the loss scale.
fn run(
    device: &Device,
    config: &TrainerConfig,
    optimizer: fn(&Parameters) -> Box<dyn Optimizer>,
    train: &Rows,
    replica: Option<(&DataParallel, &RunFolder)>,
) -> Result<Checkpoint, Error> {
    let setting = Setting { config: config.clone(), ..Setting::default() };
    let mut ready = setting.ready();
    if let Some((replica, _)) = replica {
        ready = ready.sharded(replica)?;
    }
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let folder = replica.map_or(folder, |(_, folder)| folder.clone());
    outputs.folder = Some(folder.clone());
    let optimizer = optimizer(&ready.params);
    let trainable = Trainable::new(&ready.model, &ready.params, &optimizer);
    let feed = FeedConfig { order: Some(Order::Sequential), ..FeedConfig::default() };
    // Both runs are standardised in the same way, whatever rows they have.
    let scale = Standardisation::of("valid", &ready.valid)?;
    let trainer = Trainer::new(device).config(config.clone()).feed(&feed).standardisation(scale);
    let trainer = match replica {
        None => trainer,
        Some((replica, _)) => trainer.replicas(replica),
    };
    trainer.prepare(trainable, &Binary::new(), train, &ready.valid)?.fit(&mut outputs)?;
    Checkpoint::load(folder.last())
}

/// Checks that everything is bit-identical except for the counters of batches and the losses.
#[track_caller]
fn check_same_bits(found: &Checkpoint, expected: &Checkpoint, what: &str) {
    let tensors = |checkpoint: &Checkpoint| -> Vec<(String, Vec<u32>)> {
        let tensors = checkpoint.tensors().filter(|(name, ..)| !name.starts_with("run."));
        let bits = |values: &TensorData| match values {
            TensorData::F32(values) => values.iter().map(|value| value.to_bits()).collect(),
            other => panic!("{other:?}: expected f32"),
        };
        tensors.map(|(name, _, values)| (name.to_owned(), bits(values))).collect()
    };
    let (found_tensors, expected_tensors) = (tensors(found), tensors(expected));
    assert!(found_tensors.len() > 6, "parameters, moments and averages: {:?}", found_tensors.iter().map(|t| &t.0));
    for (found, expected) in found_tensors.iter().zip(&expected_tensors) {
        assert!(found == expected, "{what}: `{}` differs from that of `{}`", found.0, expected.0);
    }
    let scaler = |checkpoint: &Checkpoint| -> Vec<(String, String)> {
        let entries = checkpoint.all_metadata().filter(|(name, _)| name.starts_with("scaler."));
        entries.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    assert_eq!(scaler(found), scaler(expected), "{what}: the loss scale and its count of good steps");
    let n_taken = |checkpoint: &Checkpoint| {
        let state = checkpoint.u32("run.state", &[4]).expect("the state of a run");
        state[1] - state[3]
    };
    assert_eq!(n_taken(found), n_taken(expected), "{what}: steps that were taken");
}

const BATCHES: [Batch; 6] = [Weighted, Weightless, SecondHalf, Weighted, Weightless, Weightless];

fn check_that_batches_are_skipped(device: &Device) -> Result<(), Error> {
    for precision in [Precision::F32, Precision::F16] {
        for (name, optimizer) in [("adamw", adamw as fn(&_) -> _), ("lookahead", lookahead)] {
            let config = TrainerConfig { clip: Some(GradientClip::Norm(0.5)), ..config(precision) };
            let found = run(device, &config, optimizer, &batches(&BATCHES, &[]), None)?;
            let expected = run(device, &config, optimizer, &batches(&BATCHES, &[1, 4, 5]), None)?;
            check_same_bits(&found, &expected, &format!("{precision}, {name}"));
        }
    }
    Ok(())
}

#[test]
fn a_batch_without_weight_is_no_step() -> Result<(), Error> {
    check_that_batches_are_skipped(&cpu(2))
}

#[test]
fn a_batch_without_weight_is_no_step_on_a_gpu() -> Result<(), Error> {
    gpu().map_or(Ok(()), |device| check_that_batches_are_skipped(&device))
}

/// In groups of two, the third group and the short last one are skipped; the second takes a step with half of the gradient of its
/// second batch.
const GROUPS: [Batch; 7] = [Weighted, Weighted, Weightless, SecondHalf, Weightless, Weightless, Weightless];

fn check_that_groups_are_skipped(device: &Device) -> Result<(), Error> {
    for precision in [Precision::F32, Precision::F16] {
        let config = TrainerConfig { accumulate: 2, ..config(precision) };
        let found = run(device, &config, adamw, &batches(&GROUPS, &[]), None)?;
        let expected = run(device, &config, adamw, &batches(&GROUPS, &[4, 5, 6]), None)?;
        check_same_bits(&found, &expected, &precision.to_string());
        // A short group is divided by two as well.
        let alone = run(device, &config, adamw, &batches(&GROUPS, &[2, 4, 5, 6]), None)?;
        check_same_bits(&found, &alone, &format!("{precision}: the batch without weight adds nothing to its group"));
    }
    Ok(())
}

#[test]
fn accumulated_batches_without_weight_are_no_step() -> Result<(), Error> {
    check_that_groups_are_skipped(&cpu(2))
}

#[test]
fn accumulated_batches_without_weight_are_no_step_on_a_gpu() -> Result<(), Error> {
    gpu().map_or(Ok(()), |device| check_that_groups_are_skipped(&device))
}

/// The checkpoint of a run of two replicas. Their batches have the weights of all.
fn replicated(config: &TrainerConfig, zero: ZeroStage, device: fn() -> Device, train: &Rows) -> Result<Checkpoint, Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (_, folder) = into_folder(root.path());
    let data_parallel = DataParallelConfig { zero, ..CONFIG };
    let mut checkpoints =
        run_threads(2, &data_parallel, |replica| run(&device(), config, adamw, train, Some((replica, &folder))))?;
    Ok(checkpoints.remove(0))
}

fn check_replicas(device: fn() -> Device, precisions: &[Precision]) -> Result<(), Error> {
    for &precision in precisions {
        for zero in [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters] {
            for (accumulate, all, left_out) in [(1, &BATCHES[..], &[1, 4, 5][..]), (2, &GROUPS, &[4, 5, 6])] {
                let ema = config(precision).ema.filter(|_| zero == ZeroStage::Replicated);
                let config = TrainerConfig { accumulate, ema, ..config(precision) };
                let found = replicated(&config, zero, device, &batches(all, &[]))?;
                let expected = replicated(&config, zero, device, &batches(all, left_out))?;
                check_same_bits(&found, &expected, &format!("{precision}, {zero:?}, {accumulate} batches a step"));
            }
        }
    }
    Ok(())
}

#[test]
fn replicas_skip_the_batches_without_weight_of_all() -> Result<(), Error> {
    check_replicas(|| cpu(1), &[Precision::F32, Precision::F16])
}

#[test]
fn replicas_on_a_gpu_skip_the_batches_without_weight_of_all() -> Result<(), Error> {
    let Some(_) = gpu() else { return Ok(()) };
    check_replicas(|| gpu().expect("there was one"), &[Precision::F16])
}

/// The half of a batch that has weight is the part of the second replica, and the step is the same as on one device.
#[test]
fn a_part_without_weight_is_no_reason_to_skip() -> Result<(), Error> {
    let config = TrainerConfig { ema: None, ..config(Precision::F32) };
    let train = batches(&[SecondHalf; 4], &[]);
    let single = run(&cpu(1), &config, adamw, &train, None)?;
    let both = replicated(&config, ZeroStage::Replicated, || cpu(1), &train)?;
    let (single, both) = (single.f32("layers.0.bias", &[24])?, both.f32("layers.0.bias", &[24])?);
    let worst = single.iter().zip(both).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(worst <= 1e-5, "they differ by {worst}");
    Ok(())
}

#[test]
fn a_run_without_any_weight_in_its_steps_is_an_error() {
    let train = batches(&[Weightless, Weightless, Weighted], &[]);
    let config = TrainerConfig { limit_train_batches: Some(Limit::Batches(2)), ..config(Precision::F32) };
    let error = run(&cpu(1), &config, adamw, &train, None).expect_err("no batch with weight is trained on");
    let expected = "no step was taken in epochs 1 to 2: the weights of all rows of its 4 steps are 0";
    assert!(error.to_string().contains(expected), "{error}");
}

/// Rows without weights are not affected.
#[test]
fn rows_without_weights_record_nothing() -> Result<(), Error> {
    let mut ready = Setting::default().ready();
    let names = |training: &brisk_train::Training<'_>| {
        training.graphs()[0].with_program(|program| program.kernel_names().map(str::to_owned).collect::<Vec<_>>())
    };
    let device = cpu(1);
    assert!(!names(&ready.trainer(&device)?).contains(&"skip_weightless".to_owned()));
    let n_rows = ready.train.n_rows();
    let weighted = ready.train.clone().with_weights(vec![1.0; n_rows]).expect("a weight a row");
    ready.train = weighted;
    assert!(names(&ready.trainer(&device)?).contains(&"skip_weightless".to_owned()));
    Ok(())
}
