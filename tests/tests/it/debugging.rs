//! Tools of the trainer for finding mistakes: the operation of the first value that is not finite, and the time of each kernel.

use brisk_loader::Rows;
use brisk_nn::tensor::{Pass, Precision, Tensor};
use brisk_nn::{Activation, Bound, GradScalerConfig, Linear, Module};
use brisk_train::{Error, FitReport, Model, Regression, RunFolder, StepLog, Trainer, TrainerConfig};

use crate::gpu::cpu;

fn rows(n: usize) -> Rows {
    let x: Vec<f32> = (0..n).map(|row| 2.0 * row as f32 / n as f32 - 1.0).collect();
    let labels = x.iter().map(|x| 2.0 * x).collect::<Vec<_>>();
    Rows::new(x, labels, 1).expect("a label for each row")
}

/// A layer whose output is raised to a power that overflows, or whose logarithm has no gradient at 0.
#[derive(Debug, Clone)]
struct Faulty {
    layer: Linear,
    fault: fn(&Tensor) -> Tensor,
}

impl Module for Faulty {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        (self.fault)(&self.layer.forward(params, x))
    }
}

fn faulty(fault: fn(&Tensor) -> Tensor) -> Model<Faulty> {
    Model::new(7, |params| Faulty { layer: Linear::new(params, "layer", 1, 1, Activation::identity()), fault })
}

fn fit(trainer: Trainer<'_>, fault: fn(&Tensor) -> Tensor) -> (Result<FitReport, Error>, Vec<f32>) {
    let (mut trainer, mut model, rows) = (trainer, faulty(fault), rows(64));
    let report = trainer.fit(&mut model, &Regression::mse(), &rows, &rows);
    (report, model.params().initial())
}

fn trainer<'a>() -> Trainer<'a> {
    Trainer::new(&cpu(1)).batch_rows(16).max_epochs(2).learning_rate(1e-2)
}

#[test]
fn the_operation_of_the_first_value_that_is_not_finite_is_named() {
    let (found, _) = fit(trainer().configure(|config| config.detect_anomaly = true), |x| (x * 1e30).exp());
    let Err(Error::Anomaly { epoch: 1, batch: 1, operation: "exp", pass: Pass::Forward, .. }) = found else {
        panic!("{found:?}")
    };
    // The root of 0 is 0, and its derivative there is not finite.
    let (found, _) = fit(trainer().configure(|config| config.detect_anomaly = true), |x| (x * 0.0).sqrt());
    let Err(error @ Error::Anomaly { pass: Pass::Backward, .. }) = found else { panic!("{found:?}") };
    let text = error.to_string();
    assert!(text.starts_with("epoch 1, batch 1, operation ") && text.contains("`sqrt`: a gradient"), "{text}");
}

#[test]
fn gradients_that_overflow_under_the_loss_scale_are_no_anomaly() {
    let scaler = GradScalerConfig { init_scale: 1e30, ..GradScalerConfig::default() };
    let precision = Precision::F16;
    let config =
        TrainerConfig { batch_rows: 16, max_epochs: 30, precision, scaler, detect_anomaly: true, ..TrainerConfig::default() };
    let (found, _) = fit(Trainer::new(&cpu(1)).config(config), |x| x * 100.0);
    let report = found.expect("a run whose scale is too high at first");
    assert!(report.scaler.is_some_and(|scaler| scaler.n_skipped > 0), "{report:?}");
}

#[test]
fn a_run_that_is_profiled_or_checked_has_the_same_result() {
    let expected = fit(trainer(), |x| x * 1.0);
    let history = |report: &Result<FitReport, Error>| report.as_ref().expect("a report").history.clone();
    assert_eq!(expected.0.as_ref().expect("a report").profile, None);
    let checked = fit(trainer().configure(|config| config.detect_anomaly = true), |x| x * 1.0);
    assert_eq!((history(&checked.0), &checked.1), (history(&expected.0), &expected.1));

    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = RunFolder::create_at(&dir.path().join("run")).expect("a folder");
    let page = dir.path().join("report.html");
    let profiled = fit(trainer().configure(|config| config.profile_batches = 2).folder(&folder).report(&page), |x| x * 1.0);
    assert_eq!((history(&profiled.0), &profiled.1), (history(&expected.0), &expected.1));
    let profile = profiled.0.expect("a report").profile.expect("a profile");
    assert_eq!(profile.n_replays(), 2);
    assert!(profile.kernels().iter().any(|kernel| kernel.name.contains("adam")), "{profile}");
    let trace = std::fs::read_to_string(folder.trace()).expect("a trace");
    let trace: serde_json::Value = serde_json::from_str(&trace).expect("JSON");
    assert!(trace["traceEvents"].as_array().is_some_and(|events| events.len() > 2), "{trace}");
    let page = std::fs::read_to_string(page).expect("a report");
    assert!(page.contains("Time per batch by kernel") && page.contains("GFLOP/s"), "the report has the profile");
}

#[test]
fn a_log_can_leave_out_batches() {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("batches.csv");
    let (report, _) = fit(trainer().callback(StepLog::new(&path).every(3)), |x| x * 1.0);
    report.expect("a report");
    let text = std::fs::read_to_string(path).expect("a log");
    let batches: Vec<&str> = text.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    assert_eq!(batches, ["0", "3", "6"], "8 batches, every third");
}
