//! Runs with an optimizer whose average is validated and kept.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use brisk_nn::{
    Activation, AdamConfig, BatchNorm, BatchNormConfig, EmaConfig, Linear, Mlp, MlpConfig, OptimizerConfig, Sequential,
};
use brisk_program::Device;
use brisk_train::{
    Binary, Callback, Checkpoint, DataParallelConfig, Error, FitReport, Model, RunView, Trainer, TrainerConfig, ValidationEnd,
    Warning, ZeroStage, run_threads,
};

use crate::gpu::{cpu, gpu};
use crate::run::{N_COLS, into_folder, rows};

const LR: f64 = 0.05;

/// Each epoch is one step.
fn trainer<'a>(device: &Device, max_epochs: usize) -> Trainer<'a> {
    let optimizer = Some(OptimizerConfig::ScheduleFreeAdamW(AdamConfig::default()));
    let config = TrainerConfig { batch_rows: 256, max_epochs, optimizer, ..TrainerConfig::default() };
    Trainer::new(device).config(config).learning_rate(LR)
}

fn model() -> Model<Mlp> {
    let sizes = MlpConfig { n_inputs: N_COLS, hidden: vec![8], n_outputs: 1, activation: Activation::relu() };
    Model::new(3, |params| Mlp::new(params, &sizes))
}

fn fit(trainer: &mut Trainer<'_>, model: &mut Model<Mlp>) -> Result<FitReport, Error> {
    trainer.fit(model, &Binary::new(), &rows(0, 256), &rows(256, 100))
}

fn values(model: &Model<Mlp>) -> Vec<f32> {
    model.params().newest().expect("the parameters of a run can be read").to_vec()
}

/// Collects the points that are trained, before the first step and after each.
#[derive(Clone, Default)]
struct Points(Arc<Mutex<Vec<Vec<f32>>>>);

impl Points {
    fn add(&self, run: &RunView<'_>) -> Result<(), Error> {
        let values = run.device.read(run.params.values())?;
        self.0.lock().expect("one thread").push(values);
        Ok(())
    }
}

impl Callback for Points {
    fn on_fit_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        self.add(run)
    }

    fn on_validation_end(&mut self, run: &RunView<'_>, _: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        self.add(run)?;
        Ok(ControlFlow::Continue(()))
    }
}

/// The average after `n` steps by its definition: `y = (1 - β₁) z + β₁ x` and `x = (1 - c) x' + c z` in each, solved for `x`.
fn average(points: &[Vec<f32>], n: usize) -> Vec<f64> {
    let (beta1, beta2) = (0.9, 0.999_f64);
    let mut x: Vec<f64> = points[0].iter().map(|&y| f64::from(y)).collect();
    let mut sum = 0.0;
    for (t, y) in points.iter().enumerate().skip(1).take(n) {
        let squared_rate = LR * LR * (1.0 - beta2.powi(t as i32));
        sum += squared_rate;
        let c = squared_rate / sum;
        for (x, &y) in x.iter_mut().zip(y) {
            let z = (f64::from(y) - beta1 * (1.0 - c) * *x) / (1.0 - beta1 + beta1 * c);
            *x = (1.0 - c) * *x + c * z;
        }
    }
    x
}

#[test]
fn the_average_of_the_optimizer_is_validated_and_kept() -> Result<(), Error> {
    for device in [Some(cpu(2)), gpu()].into_iter().flatten() {
        let (mut model, points) = (model(), Points::default());
        let report = fit(&mut trainer(&device, 6).callback(points.clone()), &mut model)?;
        let points = points.0.lock().expect("one thread");
        let expected = average(&points, report.best_epoch);
        let found = values(&model);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((f64::from(*found) - expected).abs() <= 1e-5 + 1e-4 * expected.abs(), "{found}, expected {expected}");
        }
        assert_ne!(found, points[report.best_epoch], "not the points that are trained");
        let scores = model.evaluate(&Binary::new(), &rows(256, 100))?;
        let watched = report.watched_values();
        let best = watched[report.best_epoch - 1];
        assert!(scores.values.iter().any(|(_, value)| (value - best).abs() < 1e-6), "{scores}, validated as {best}");
    }
    Ok(())
}

#[test]
fn a_run_resumes_with_its_average() -> Result<(), Error> {
    let device = cpu(2);
    let root = tempfile::tempdir().expect("a temporary folder");
    let (_, folder) = into_folder(root.path());
    let mut whole = model();
    let report = fit(&mut trainer(&device, 5), &mut whole)?;
    fit(&mut trainer(&device, 2).folder(&folder), &mut model())?;
    let (mut resumed, last) = (model(), Checkpoint::load(folder.last())?);
    let (train, valid) = (rows(0, 256), rows(256, 100));
    let again = trainer(&device, 5).resume(&mut resumed, &last, &Binary::new(), &train, &valid)?;
    assert_eq!(again.history, report.history[2..]);
    assert_eq!(values(&resumed), values(&whole), "bit for bit");
    Ok(())
}

#[test]
fn an_average_that_cannot_be_validated_is_refused() {
    let error = fit(&mut trainer(&cpu(1), 2).ema(EmaConfig::new(0.9)), &mut model()).expect_err("two averages").to_string();
    assert!(error.contains("ema: found an optimizer whose own average is validated"), "{error}");
    let config = DataParallelConfig { zero: ZeroStage::Optimizer, ..DataParallelConfig::default() };
    let error = run_threads(2, &config, |replica| fit(&mut trainer(&cpu(1), 2).replicas(replica), &mut model()));
    let error = error.expect_err("each replica has a part").to_string();
    assert!(error.contains("schedule_free") && error.contains("sharded across replicas"), "{error}");
}

#[test]
fn running_statistics_of_other_parameters_are_named() -> Result<(), Error> {
    let mut model = Model::new(3, |params| {
        let norm = Box::new(BatchNorm::new(params, "0", &BatchNormConfig::new(N_COLS)));
        Sequential(vec![norm, Box::new(Linear::new(params, "1", N_COLS, 1, Activation::identity()))])
    });
    let report = trainer(&cpu(1), 1).fit(&mut model, &Binary::new(), &rows(0, 256), &rows(256, 100))?;
    assert!(report.warnings.contains(&Warning::StatisticsOfIterates), "{:?}", report.warnings);
    Ok(())
}
