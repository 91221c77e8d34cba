//! Runs with products in 16 bits, several batches per step, clipped gradients; and that they resume bit-identically from a
//! checkpoint.

use brisk_nn::tensor::{Graph, Precision};
use brisk_nn::{GradScalerConfig, Optimizer, Parameters, StepInputs};
use brisk_program::Device;
use brisk_train::{
    Binary, Checkpoint, DataParallelConfig, Error, FitReport, GradientClip, MetricsLog, Outputs, ResumeMismatch, Trainable,
    Trainer, TrainerConfig, Warning, ZeroStage,
};

use crate::gpu::{cpu, gpu};
use crate::replicas::{CONFIG, replicated};
use crate::run::{Ready, Setting, history, into_folder, quiet};

fn setting(config: TrainerConfig) -> Ready {
    let default = Setting::default();
    Setting { n_rows: 600, config, ..default }.ready()
}

fn config(precision: Precision) -> TrainerConfig {
    TrainerConfig { precision, max_epochs: 4, ..Setting::default().config }
}

/// A scale that overflows f16 by far.
const FAR_TOO_HIGH: GradScalerConfig = GradScalerConfig {
    init_scale: (1_u64 << 40) as f32,
    growth_factor: 2.0,
    backoff_factor: 0.5,
    growth_interval: 2000,
    enabled: true,
};

fn check_that_a_run_recovers(device: &Device) -> Result<(), Error> {
    let expected = setting(config(Precision::F32)).fit(device)?.0;
    let (found, values) = setting(TrainerConfig { scaler: FAR_TOO_HIGH, max_epochs: 6, ..config(Precision::F16) }).fit(device)?;
    let scaler = found.scaler.expect("the loss of a run in f16 is scaled");
    assert!((10..40).contains(&scaler.n_skipped) && scaler.n_skipped_in_a_row == 0, "from 2^40 downwards: {scaler:?}");
    assert_eq!(
        scaler.scale,
        FAR_TOO_HIGH.init_scale / 2.0_f32.powi(scaler.n_skipped as i32),
        "halved by each step that was skipped"
    );
    assert!(values.iter().all(|value| value.is_finite()), "no gradient that was not finite reached the parameters");
    // About the first two of six epochs are lost.
    assert!(found.best_value > expected.best_value - 0.05, "{found:?}, in f32 {expected:?}");
    assert!(history(&found).iter().all(|(loss, _)| loss.is_finite()), "{found:?}");
    Ok(())
}

#[test]
fn a_run_whose_gradients_overflow_recovers() -> Result<(), Error> {
    check_that_a_run_recovers(&cpu(2))
}

#[test]
fn a_run_whose_gradients_overflow_recovers_on_a_gpu() -> Result<(), Error> {
    gpu().map_or(Ok(()), |device| check_that_a_run_recovers(&device))
}

#[test]
fn losses_are_those_of_f32_within_the_format() -> Result<(), Error> {
    let device = cpu(2);
    let expected = setting(config(Precision::F32)).fit(&device)?.0;
    assert_eq!(expected.scaler, None, "nothing is scaled");
    for (precision, tolerance) in [(Precision::F16, 2e-3), (Precision::Bf16, 1e-2)] {
        let found = setting(config(precision)).fit(&device)?.0;
        assert_eq!(found.scaler.is_some(), precision == Precision::F16, "bf16 has the range of f32");
        for (found, expected) in history(&found).iter().zip(&history(&expected)) {
            assert!(found != expected, "{precision}: what is rounded differs");
            let close = |a: f64, b: f64| (a - b).abs() <= tolerance;
            assert!(close(found.0, expected.0) && close(found.1, expected.1), "{precision}: {found:?}, in f32 {expected:?}");
        }
    }
    Ok(())
}

#[test]
fn steps_that_are_skipped_to_the_end_are_an_error() -> Result<(), Error> {
    // 600 rows are ten batches.
    let config = TrainerConfig { scaler: FAR_TOO_HIGH, max_skipped: 10, ..config(Precision::F16) };
    let error = setting(config).fit(&cpu(2)).expect_err("all ten of the first epoch");
    let Error::SkippedSteps { first_epoch: None, last_epoch: 1, n_skipped: 10, scale, .. } = error else { panic!("{error}") };
    assert_eq!(scale, (1_u64 << 30) as f32, "{error}");
    assert!(error.to_string().contains("the last 10 steps until the end of epoch 1 were skipped"), "{error}");
    Ok(())
}

/// A network whose first layer overflows in f16 for every row, but not in f32: all scores are infinite, losses and gradients are
/// not finite.
fn without_a_finite_loss(max_epochs: usize, accumulate: usize) -> Ready {
    let config = TrainerConfig { max_epochs, accumulate, ..config(Precision::F16) };
    let mut ready = setting(config);
    for (name, values) in [("layers.0.bias", [1e6; 24]), ("layers.1.weight", [0.1; 24])] {
        let id = ready.params.id_of(name).expect("a network of two layers");
        ready.params.set_initial(id, &values).expect("24 units");
    }
    ready
}

#[test]
fn a_loss_that_is_not_finite_from_the_start_is_an_error_however_short_the_run() {
    for max_epochs in [1, 2, 1000] {
        let error = without_a_finite_loss(max_epochs, 1).fit(&cpu(2)).expect_err("nothing can be learnt");
        let Error::SkippedSteps { first_epoch: Some(1), last_epoch: 1, n_skipped: 10, scale, loss } = error else {
            panic!("{error}")
        };
        assert!(!loss.is_finite(), "{error}");
        assert_eq!(scale, 64.0, "{error}");
        let said = error.to_string();
        let words = "no step was taken in epoch 1: all 10 were skipped, since their gradients are not finite; the loss scale is 6.4e1, the last loss is ";
        assert!(said.starts_with(words) && said.contains("lower the learning rate"), "{said}");
    }
}

#[test]
fn replicas_without_a_finite_loss_end_with_the_error_too() {
    for zero in [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters] {
        let ended = replicated(2, DataParallelConfig { zero, ..CONFIG }, || cpu(1), || without_a_finite_loss(1, 1)).map(|_| ());
        assert!(
            matches!(ended, Err(Error::SkippedSteps { first_epoch: Some(1), last_epoch: 1, n_skipped: 10, .. })),
            "{zero:?}: {ended:?}"
        );
    }
}

#[test]
fn accumulated_batches_without_a_finite_loss_are_an_error() {
    let ended = without_a_finite_loss(1, 4).fit(&cpu(2)).map(|_| ());
    assert!(matches!(ended, Err(Error::SkippedSteps { first_epoch: Some(1), last_epoch: 1, n_skipped: 3, .. })), "{ended:?}");
}

/// Losses are finite, and their gradients overflow until the scale has decreased, which takes longer than the run.
#[test]
fn a_run_without_a_step_is_an_error() -> Result<(), Error> {
    let with = |max_epochs| TrainerConfig { scaler: FAR_TOO_HIGH, max_epochs, ..config(Precision::F16) };
    let error = setting(with(1)).fit(&cpu(2)).expect_err("all ten steps overflow");
    let Error::SkippedSteps { first_epoch: Some(1), last_epoch: 1, n_skipped: 10, scale, loss } = error else {
        panic!("{error}")
    };
    assert!(scale > 1.0 && loss.is_finite(), "{error}");
    // Later epochs take steps, and the run warns of the first.
    let report = setting(with(8)).fit(&cpu(2))?.0;
    let first = Warning::NoStepTaken { epoch: 1, n_skipped: 10, scale };
    assert_eq!(report.warnings.first(), Some(&first), "{report:?}");
    let skipped = report.scaler.expect("f16 is scaled").n_skipped;
    assert!(skipped < 80, "{skipped} of 80 steps were skipped");
    Ok(())
}

#[test]
fn several_batches_a_step_are_a_large_batch() -> Result<(), Error> {
    let device = cpu(2);
    let with = |batch_rows, accumulate| TrainerConfig { batch_rows, accumulate, ..config(Precision::F32) };
    // 576 rows are nine batches of 64, or 36 of 16.
    let run = |config| Setting { n_rows: 576, config, ..Setting::default() }.ready().fit(&device);
    let ((expected, values), (found, others)) = (run(with(64, 1))?, run(with(16, 4))?);
    for (found, expected) in history(&found).iter().zip(&history(&expected)) {
        assert!((found.0 - expected.0).abs() <= 1e-5, "{found:?}, in large batches {expected:?}");
    }
    let furthest = values.iter().zip(&others).fold(0.0_f32, |furthest, (a, b)| furthest.max((a - b).abs()));
    assert!(furthest <= 1e-4, "a parameter is {furthest} away from that of large batches");
    assert_ne!(run(with(16, 1))?.1, others, "a step for each is another run");
    Ok(())
}

#[test]
fn gradients_are_clipped_before_the_step() -> Result<(), Error> {
    let device = cpu(2);
    for precision in [Precision::F32, Precision::F16] {
        for clip in [GradientClip::Norm(0.0), GradientClip::Value(0.0)] {
            let ready = setting(TrainerConfig { clip: Some(clip), ..config(precision) });
            let report = ready.fit(&device)?.0;
            let aucs: Vec<f64> = history(&report).iter().map(|epoch| epoch.1).collect();
            assert!(aucs.iter().all(|&auc| auc == aucs[0]), "{clip:?}: without gradients nothing moves: {aucs:?}");
        }
    }
    let error = setting(TrainerConfig { clip: Some(GradientClip::Norm(-1.0)), ..config(Precision::F32) }).fit(&device);
    assert!(error.expect_err("a norm is not negative").to_string().contains("clip: found -1"));
    Ok(())
}

/// A run of 4 epochs, and one of 2 that is resumed for 2 more by another trainer on another device; from the last checkpoint or
/// the best.
fn check_resumed(config: &TrainerConfig) -> Result<(), Error> {
    let whole_root = tempfile::tempdir().expect("a folder for a while");
    let root = tempfile::tempdir().expect("a folder for a while");
    let ready = setting(config.clone());
    let (mut outputs, whole_folder) = into_folder(whole_root.path());
    let expected = ready.trainer(&cpu(2))?.fit(&mut outputs)?;

    let (mut outputs, folder) = into_folder(root.path());
    let half = setting(TrainerConfig { max_epochs: 2, ..config.clone() });
    half.trainer(&cpu(2))?.fit(&mut outputs)?;
    let last = Checkpoint::load(folder.last())?;
    let (ready, device) = (setting(config.clone()), cpu(1));
    let found = ready.trainer(&device)?.resume(&last, &mut outputs)?;
    assert_eq!((found.n_epochs, found.best_epoch, found.best_value), (4, expected.best_epoch, expected.best_value), "{config:?}");
    assert_eq!(found.history, expected.history[2..], "{config:?}: bit-identical");
    assert_eq!(found.scaler.map(|scaler| scaler.scale), expected.scaler.map(|scaler| scaler.scale), "{config:?}");
    let [found, expected] = [&folder, &whole_folder].map(|folder| Checkpoint::load(folder.last()));
    let (found, expected) = (found?, expected?);
    assert!(found.tensors().eq(expected.tensors()), "{config:?}: parameters, optimizer, counts, the best model");
    assert!(found.all_metadata().eq(expected.all_metadata()), "{config:?}: scaler, epochs, early stopping");
    let [found, expected] = [&folder, &whole_folder].map(|folder| std::fs::read_to_string(folder.metrics_csv()));
    assert_eq!(found.expect("a log"), expected.expect("a log"), "{config:?}: the log goes on");
    Ok(())
}

#[test]
fn a_run_is_resumed_to_the_same_bits() -> Result<(), Error> {
    let scaler = GradScalerConfig { init_scale: (1_u64 << 24) as f32, growth_interval: 7, ..GradScalerConfig::default() };
    let f16 = TrainerConfig { scaler, ..config(Precision::F16) };
    check_resumed(&f16)?;
    check_resumed(&TrainerConfig { accumulate: 4, clip: Some(GradientClip::Norm(0.5)), ..f16 })?;
    check_resumed(&config(Precision::Bf16))?;
    check_resumed(&config(Precision::F32))
}

#[test]
fn a_run_is_resumed_from_its_best_checkpoint() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let (mut outputs, folder) = into_folder(root.path());
    let ready = setting(config(Precision::F16));
    let expected: FitReport = ready.trainer(&cpu(2))?.fit(&mut outputs)?;
    let best = Checkpoint::load(folder.best())?;
    let (device, ready) = (cpu(2), setting(config(Precision::F16)));
    let found = ready.trainer(&device)?.resume(&best, &mut outputs)?;
    assert_eq!(found.history, expected.history[expected.best_epoch..], "the epochs after it");
    assert_eq!((found.n_epochs, found.best_epoch, found.best_value), (4, expected.best_epoch, expected.best_value));
    Ok(())
}

#[test]
fn a_checkpoint_of_another_run_is_refused() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let (mut outputs, folder) = into_folder(root.path());
    let device = cpu(2);
    setting(TrainerConfig { max_epochs: 1, ..config(Precision::F16) }).trainer(&device)?.fit(&mut outputs)?;
    let last = Checkpoint::load(folder.last())?;
    let refused = |setting: Setting, expected: &str| {
        let error = setting.ready().trainer(&device)?.resume(&last, &mut quiet()).expect_err("it does not fit");
        assert!(error.to_string().contains(expected), "{error}");
        Ok::<_, Error>(())
    };
    let default = Setting { n_rows: 600, config: config(Precision::F16), ..Setting::default() };
    refused(Setting { seed: 2, ..default.clone() }, "seed: 1 in the checkpoint, 2 here; make them the same, or allow")?;
    refused(Setting { hidden: vec![25], ..default.clone() }, "tensor `layers.0.weight` is f32 [24, 5], expected f32 [25, 5]")?;
    let scaler = GradScalerConfig { growth_interval: 3, ..GradScalerConfig::default() };
    refused(
        Setting { config: TrainerConfig { scaler, ..config(Precision::F16) }, ..default.clone() },
        "scaler.growth_interval: 2000 in the checkpoint, 3 here",
    )?;
    // A run without a scaler refuses a checkpoint with one, unless another precision is allowed.
    let f32_run = Setting { config: config(Precision::F32), ..default };
    refused(f32_run.clone(), "precision: f16 in the checkpoint, f32 here")?;
    let allowed = [ResumeMismatch::Precision];
    let report = f32_run.ready().trainer(&device)?.resume_with(&last, &allowed, &mut quiet())?;
    assert_eq!((report.n_epochs, report.scaler), (4, None), "{report:?}");
    Ok(())
}

/// An optimizer that does not support skipping.
#[derive(Debug)]
struct Stubborn;

impl Optimizer for Stubborn {
    fn record(&self, _: &Graph, _: &Parameters, _: &StepInputs) {}
}

#[test]
fn an_optimizer_that_does_not_skip_takes_one_batch_a_step_in_f32() -> Result<(), Error> {
    let (ready, device) = (Setting::default().ready(), cpu(1));
    let trainer = |config: TrainerConfig| {
        Trainer::new(&device)
            .config(config)
            .prepare(Trainable::new(&ready.model, &ready.params, &Stubborn), &Binary::new(), &ready.train, &ready.valid)
            .map(drop)
    };
    trainer(config(Precision::F32))?;
    for config in [config(Precision::F16), TrainerConfig { accumulate: 2, ..config(Precision::F32) }] {
        let error = trainer(config).expect_err("it would step in spite of all");
        assert!(error.to_string().contains("the optimizer does not say that its steps can be skipped"), "{error}");
    }
    let error = trainer(TrainerConfig { accumulate: 0, ..config(Precision::F32) }).expect_err("no step at all");
    assert!(error.to_string().contains("accumulate"), "{error}");
    Ok(())
}

#[test]
fn scale_and_skipped_steps_are_in_the_log() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let (mut outputs, folder): (Outputs, _) = into_folder(root.path());
    let ready = setting(TrainerConfig { scaler: FAR_TOO_HIGH, max_epochs: 6, ..config(Precision::F16) });
    // All ten steps of the first epoch are skipped, which does not end the run.
    ready.trainer(&cpu(2))?.fit(&mut outputs)?;
    let log = std::fs::read_to_string(folder.metrics_csv()).expect("a log");
    let [header, row, ..] = log.lines().collect::<Vec<_>>()[..] else { panic!("{log}") };
    assert_eq!(header, "epoch,lr,train_loss,valid_loss,valid_auc,valid_accuracy,valid_log_loss,loss_scale,skipped");
    assert!(row.ends_with(&format!(",{},10", 1_u64 << 30)), "{row}");
    drop(MetricsLog::resume(&folder.metrics_csv(), &folder.metrics_json(), 1)?);
    Ok(())
}
