//! Validations within an epoch: when they happen, what follows from each, and that training does not change.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::rc::Rc;

use brisk_nn::{Activation, BatchNorm, BatchNormConfig, EmaConfig, Linear, Schedule, Sequential};
use brisk_tensor::Precision;
use brisk_train::{
    BatchesEnd, Binary, Callback, Checkpoint, DataParallelConfig, EarlyStopping, Ended, Error, FeedChoice, FeedConfig, FitReport,
    Model, Outputs, ReduceLrOnPlateau, RunFolder, RunView, StopFlag, StopReason, Swa, ThresholdMode, Trainer, TrainerConfig,
    ValidationEnd, ValidationInterval, ZeroStage,
};

use crate::gpu::{cpu, gpu};
use crate::replicas::{CONFIG, check_alike, check_same_bits, replicated};
use crate::run::{N_COLS, Setting, into_folder, quiet, rows};

use ValidationInterval::{Batches, Share};

/// 500 rows in batches of 64: eight batches per epoch, three epochs.
fn config(interval: ValidationInterval) -> TrainerConfig {
    TrainerConfig { validate_within_epoch: Some(interval), ..Setting::default().config }
}

fn setting(config: TrainerConfig) -> Setting {
    Setting { config, ..Setting::default() }
}

fn fit(config: TrainerConfig) -> Result<FitReport, Error> {
    Ok(setting(config).ready().fit(&cpu(1))?.0)
}

/// Epoch and batch of each entry of the history.
fn places(report: &FitReport) -> Vec<(usize, usize)> {
    report.history.iter().map(|metrics| (metrics.epoch, metrics.batch)).collect()
}

/// The batches of the first epoch after which it is validated; the other epochs are the same.
#[track_caller]
fn check_places(config: TrainerConfig, expected: &[usize]) -> Result<(), Error> {
    let report = fit(config.clone())?;
    let of_epoch = |epoch| expected.iter().map(move |&batch| (epoch, batch));
    assert_eq!(places(&report), (1..=3).flat_map(of_epoch).collect::<Vec<_>>(), "{config:?}");
    Ok(())
}

#[test]
fn an_epoch_is_validated_after_each_interval_and_at_its_end() -> Result<(), Error> {
    check_places(config(Share(0.25)), &[2, 4, 6, 8])?;
    check_places(config(Share(0.3)), &[2, 4, 6, 8])?;
    check_places(config(Share(0.01)), &[1, 2, 3, 4, 5, 6, 7, 8])?;
    check_places(config(Share(1.0)), &[8])?;
    check_places(config(Batches(3)), &[3, 6, 8])?;
    check_places(config(Batches(8)), &[8])?;
    check_places(TrainerConfig { accumulate: 3, ..config(Batches(2)) }, &[3, 6, 8])?;
    check_places(TrainerConfig { accumulate: 2, ..config(Batches(3)) }, &[4, 6, 8])?;
    check_places(TrainerConfig { limit_train_batches: Some(brisk_train::Limit::Batches(6)), ..config(Share(0.5)) }, &[3, 6])?;

    let rare = fit(TrainerConfig { validate_every: 2, ..config(Share(0.5)) })?;
    assert_eq!(places(&rare), [(1, 8), (2, 4), (2, 8), (3, 8)], "only epochs that are validated are validated within");
    assert!(rare.history[0].get("valid_auc").is_some_and(f64::is_nan), "the first is not");
    Ok(())
}

#[test]
fn an_interval_that_is_none_is_refused_before_the_first_step() {
    for (interval, expected) in [
        (Batches(0), "found 0 batches, expected at least one batch"),
        (Share(2.0), "found 2, expected a share above 0 and at most 1"),
        (Batches(9), "found 9 batches of an epoch that has 8, expected at most the batches of an epoch; use `validate_every`"),
    ] {
        let ready = setting(config(interval)).ready();
        let error = ready.trainer(&cpu(1)).map(drop).expect_err("no such interval").to_string();
        assert!(error.starts_with("validate_within_epoch: ") && error.contains(expected), "{error}");
    }
}

/// A model with running statistics.
fn model() -> Model<Sequential> {
    let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(8) };
    Model::new(3, |params| {
        Sequential(vec![
            Box::new(Linear::new(params, "0", N_COLS, 8, Activation::identity())),
            Box::new(BatchNorm::new(params, "1", &norm)),
            Box::new(Linear::new(params, "2", 8, 1, Activation::identity())),
        ])
    })
}

/// Trains the model with eight full batches per epoch; returns the model and optimizer in `last.safetensors` at the end, without
/// the best model.
fn last_state(config: &TrainerConfig, feed: &FeedConfig) -> Result<(BTreeMap<String, String>, FitReport), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (_, folder) = into_folder(root.path());
    let trainer = Trainer::new(&cpu(1)).config(config.clone()).feed(feed).folder(&folder);
    let report = { trainer }.fit(&mut model(), &Binary::new(), &rows(0, 512), &rows(512, 300))?;
    let last = Checkpoint::load(folder.last())?;
    let tensors = last.tensors().filter(|(name, ..)| !name.starts_with("best."));
    Ok((tensors.map(|(name, _, values)| (name.to_owned(), format!("{values:?}"))).collect(), report))
}

#[test]
fn training_has_the_same_bits_with_and_without() -> Result<(), Error> {
    let default = TrainerConfig { max_epochs: 2, ..Setting::default().config };
    let resident = FeedConfig::default();
    let batch_bytes = 64 * (N_COLS + 1) * size_of::<f32>();
    let streamed = |chunk_batches| FeedConfig {
        choice: FeedChoice::Streamed,
        chunk_bytes: chunk_batches * batch_bytes,
        ..FeedConfig::default()
    };
    let ema = Some(EmaConfig::new(0.9));
    let mut histories = BTreeMap::new();
    for (feed, config) in [
        (resident.clone(), default.clone()),
        (resident.clone(), TrainerConfig { ema, accumulate: 2, ..default.clone() }),
        (resident, TrainerConfig { accumulate: 3, precision: Precision::F16, ..default.clone() }),
        (streamed(1), default.clone()),
        (streamed(3), default.clone()),
        (streamed(100), TrainerConfig { ema, accumulate: 2, ..default.clone() }),
    ] {
        let (expected, without) = last_state(&config, &feed)?;
        for interval in [Share(0.5), Batches(3)] {
            let config = TrainerConfig { validate_within_epoch: Some(interval), ..config.clone() };
            let (found, report) = last_state(&config, &feed)?;
            assert!(found == expected, "{config:?}: other bits");
            let ends: Vec<_> = report.history.iter().filter(|metrics| metrics.batch == 8).cloned().collect();
            assert_eq!(ends, without.history, "{config:?}: the same metrics at the end of epochs");
            let of_config = histories.entry(format!("{config:?}")).or_insert_with(|| report.history.clone());
            assert_eq!(report.history, *of_config, "{config:?}: the same metrics, however rows reach the device");
        }
    }
    Ok(())
}

#[test]
fn a_validation_within_an_epoch_is_that_of_a_run_that_ends_there() -> Result<(), Error> {
    for ema in [None, Some(EmaConfig::new(0.5))] {
        let default = TrainerConfig { ema, ..Setting::default().config };
        let within = fit(TrainerConfig { validate_within_epoch: Some(Batches(3)), ..default.clone() })?;
        for (n_steps, index) in [(3, 0), (6, 1), (8, 2), (11, 3)] {
            let limited = fit(TrainerConfig { max_steps: Some(n_steps), ..default.clone() })?;
            assert_eq!(limited.history.last(), Some(&within.history[index]), "after {n_steps} steps");
        }
    }
    Ok(())
}

/// A metric that improves only the first time.
fn impatient(patience: usize) -> Option<EarlyStopping> {
    Some(EarlyStopping::on("train_loss").patience(patience).min_delta(10.0))
}

#[test]
fn early_stopping_counts_validations_and_ends_within_the_epoch() -> Result<(), Error> {
    let stopped = |patience, min_epochs| TrainerConfig {
        early_stopping: impatient(patience),
        min_epochs,
        keep_best: 2,
        ..config(Batches(2))
    };
    let early = Ended::Early(StopReason::PatienceExhausted);
    for (patience, min_epochs, expected, n_epochs) in [(2, 0, (1, 6), 0), (4, 0, (2, 2), 1), (2, 1, (1, 8), 1), (2, 2, (2, 8), 2)]
    {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (mut outputs, folder) = into_folder(root.path());
        let ready = setting(stopped(patience, min_epochs)).ready();
        let device = cpu(1);
        let report = ready.trainer(&device)?.fit(&mut outputs)?;
        assert_eq!((report.ended, report.n_epochs), (early, n_epochs), "{patience}, {min_epochs}");
        assert_eq!(places(&report).last(), Some(&expected), "{patience}, {min_epochs}");
        // The best model is that with the lowest training loss.
        let best = report.history.iter().min_by(|a, b| a.train_loss().total_cmp(&b.train_loss())).expect("it was validated");
        assert_eq!((report.best_epoch, report.best_batch, report.best_value), (best.epoch, best.batch, best.train_loss()));
        let weights: Vec<f32> = device.read(ready.params.values())?;
        let [best, last] = [Checkpoint::load(folder.best())?, Checkpoint::load(folder.last())?];
        for entry in ready.params.entries() {
            assert_eq!(best.f32(&entry.name, &entry.shape)?, &weights[entry.range.clone()], "the run leaves the best model");
        }
        assert_eq!(folder.best_checkpoints()?.len(), 2, "two are kept");

        // A run that had ended ends again.
        let before = fs::read(folder.last()).expect("a checkpoint");
        let again = ready.trainer(&device)?.resume(&last, &mut outputs)?;
        assert_eq!((again.ended, again.n_epochs, again.best_batch), (report.ended, report.n_epochs, report.best_batch));
        assert!(fs::read(folder.last()).expect("a checkpoint") == before, "the same checkpoint");
        let whole = fit(TrainerConfig { early_stopping: impatient(99), ..stopped(99, 0) })?;
        let patient = setting(stopped(99, 0)).ready();
        let more = patient.trainer(&device)?.resume(&last, &mut quiet())?;
        assert_eq!(more.history, whole.history[report.history.len()..], "with more patience it continues");
    }
    Ok(())
}

#[test]
fn checkpoints_of_validations_in_one_epoch_have_names_of_their_own() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let report = setting(TrainerConfig { keep_best: 99, ..config(Share(0.5)) }).ready().trainer(&cpu(1))?.fit(&mut outputs)?;
    let expected: Vec<_> = report
        .history
        .iter()
        .map(|metrics| {
            let value = metrics.get("valid_auc").expect("a metric");
            match metrics.batch {
                8 => folder.best_of(metrics.epoch, "valid_auc", value),
                batch => folder.best_within(metrics.epoch, batch, "valid_auc", value),
            }
        })
        .collect();
    assert_eq!(folder.best_checkpoints()?, expected, "in the order of the run");
    for (path, metrics) in expected.iter().zip(&report.history) {
        let checkpoint = Checkpoint::load(path)?;
        assert_eq!(checkpoint.metadata::<f64>("valid_auc", "a number")?, metrics.get("valid_auc").expect("a metric"));
        let within = checkpoint.metadata::<usize>("batch", "a number").ok();
        assert_eq!(within, (metrics.batch != 8).then_some(metrics.batch));
    }
    assert!(folder.set_aside()?.is_some(), "they make room for a new run");
    assert_eq!(folder.best_checkpoints()?, Vec::<std::path::PathBuf>::new());
    Ok(())
}

/// Fails at the n-th call, or sets a flag then.
struct AtEvent {
    left: Rc<Cell<usize>>,
    stop: Option<StopFlag>,
}

impl AtEvent {
    fn event(&self) -> Result<(), Error> {
        self.left.set(self.left.get().saturating_sub(1));
        match &self.stop {
            Some(stop) if self.left.get() == 0 => stop.request(),
            None if self.left.get() == 0 => {
                let cause = std::io::Error::other("killed");
                return Err(Error::Io { path: "here".into(), action: "go on", cause });
            }
            _ => {}
        }
        Ok(())
    }
}

impl Callback for AtEvent {
    fn on_batches_end(&mut self, _: &RunView<'_>, _: &BatchesEnd<'_>) -> Result<(), Error> {
        self.event()
    }
    fn on_validation_end(&mut self, _: &RunView<'_>, _: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        self.event().map(|()| ControlFlow::Continue(()))
    }
    fn on_checkpoint(&mut self, _: &RunView<'_>, _: &Path) -> Result<(), Error> {
        self.event()
    }
}

/// The files that a run leaves in its folder.
struct Left {
    best_and_last: [Vec<u8>; 2],
    other_checkpoints: Vec<OsString>,
    logs: [String; 2],
}

fn left(folder: &RunFolder) -> Result<Left, Error> {
    let best_and_last = [folder.best(), folder.last()].map(|path| fs::read(path).expect("a checkpoint"));
    let names = folder.best_checkpoints()?.into_iter().map(|path| path.file_name().expect("a file").to_owned());
    let logs = [folder.metrics_csv(), folder.metrics_json()].map(|path| fs::read_to_string(path).expect("a log"));
    Ok(Left { best_and_last, other_checkpoints: names.collect(), logs })
}

/// A run is interrupted at one of its events, the first of them `first` and then every `every`-th, and resumed from the newest
/// checkpoint that it has written.
fn check_interrupted(config: &TrainerConfig, is_stopped: bool, (first, every): (usize, usize)) -> Result<(), Error> {
    let ready = setting(config.clone()).ready();
    let whole_root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, whole_folder) = into_folder(whole_root.path());
    let whole = ready.trainer(&cpu(1))?.fit(&mut outputs)?;
    let expected = left(&whole_folder)?;
    for n_events in (first..).step_by(every) {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (outputs, folder) = into_folder(root.path());
        let left_events = Rc::new(Cell::new(n_events));
        let stop = is_stopped.then(|| outputs.stop.clone());
        let callback = AtEvent { left: left_events.clone(), stop };
        let mut outputs = Outputs { callbacks: vec![Box::new(callback)], ..outputs };
        let interrupted = ready.trainer(&cpu(1))?.fit(&mut outputs);
        if left_events.get() > 0 {
            assert!(n_events > 12, "{config:?}: the run has few events: {n_events}");
            return Ok(());
        }
        let Some((_, newest)) = folder.find_checkpoint()?.newest else {
            assert!(n_events < 4, "there is a checkpoint after the first validation: {interrupted:?}");
            continue;
        };
        let mut outputs = Outputs { folder: Some(folder.clone()), ..quiet() };
        let report = ready.trainer(&cpu(1))?.resume(&newest, &mut outputs)?;
        let what = format!("{config:?}, {n_events} events");
        let history = &whole.history[whole.history.len() - report.history.len()..];
        assert_eq!(report.history, history, "{what}: the same metrics");
        assert_eq!((report.ended, report.n_epochs), (whole.ended, whole.n_epochs), "{what}");
        assert_eq!((report.best_epoch, report.best_batch), (whole.best_epoch, whole.best_batch), "{what}");
        let found = left(&folder)?;
        assert_eq!(found.other_checkpoints, expected.other_checkpoints, "{what}: the same checkpoints are kept");
        assert_eq!(found.logs, expected.logs, "{what}: the same log");
        assert!(found.best_and_last == expected.best_and_last, "{what}: the same checkpoints, bit for bit");
    }
    unreachable!("the run has finitely many events");
}

/// A rate so high that the metric does not only improve.
fn fast(config: TrainerConfig) -> TrainerConfig {
    TrainerConfig { max_epochs: 2, schedule: Schedule::constant(0.1), keep_best: 2, ..config }
}

#[test]
fn a_killed_run_resumes_as_if_it_had_not_been() -> Result<(), Error> {
    let early_stopping = Some(EarlyStopping::on("valid_auc").patience(3).min_delta(0.02));
    check_interrupted(&fast(TrainerConfig { early_stopping, ..config(Batches(3)) }), false, (1, 4))
}

#[test]
fn a_killed_run_resumes_from_other_checkpoints_within_an_epoch() -> Result<(), Error> {
    check_interrupted(&fast(TrainerConfig { accumulate: 2, checkpoint_every: 1, ..config(Batches(3)) }), false, (2, 7))
}

#[test]
fn a_killed_run_with_averaged_parameters_resumes() -> Result<(), Error> {
    let ema = Some(EmaConfig::new(0.5));
    check_interrupted(&fast(TrainerConfig { ema, checkpoint_on_error: true, ..config(Batches(2)) }), false, (4, 9))
}

#[test]
fn a_stopped_run_resumes_as_if_it_had_not_been() -> Result<(), Error> {
    let early_stopping = impatient(5);
    check_interrupted(&fast(TrainerConfig { early_stopping, ..config(Batches(2)) }), true, (1, 6))
}

#[test]
fn a_killed_run_whose_rates_are_reduced_resumes() -> Result<(), Error> {
    let reduce_lr_on_plateau = Some(reducing());
    check_interrupted(&fast(TrainerConfig { reduce_lr_on_plateau, accumulate: 2, ..config(Batches(4)) }), false, (2, 5))
}

/// Rates that are reduced after each second validation without a large improvement.
fn reducing() -> ReduceLrOnPlateau {
    ReduceLrOnPlateau::on("valid_loss").factor(0.5).patience(0).cooldown(1).threshold(0.1, ThresholdMode::Absolute)
}

#[test]
fn a_limit_where_the_model_has_been_validated_adds_no_validation() -> Result<(), Error> {
    let default = TrainerConfig { early_stopping: Some(EarlyStopping::default().patience(99)), ..config(Batches(2)) };
    let whole = fit(default.clone())?;
    for (n_steps, expected) in [(12, 6), (13, 7)] {
        let root = tempfile::tempdir().expect("a temporary folder");
        let (mut outputs, folder) = into_folder(root.path());
        let ready = setting(TrainerConfig { max_steps: Some(n_steps), ..default.clone() }).ready();
        let report = ready.trainer(&cpu(1))?.fit(&mut outputs)?;
        assert_eq!((report.ended, report.n_epochs), (Ended::MaxSteps, 1));
        assert_eq!(places(&report).len(), expected, "{n_steps} steps of eight each");
        let last = Checkpoint::load(folder.last())?;
        let again = ready.trainer(&cpu(1))?.resume(&last, &mut quiet())?;
        assert_eq!((again.ended, again.best_epoch, again.best_batch), (report.ended, report.best_epoch, report.best_batch));
        let resumed = setting(default.clone()).ready().trainer(&cpu(1))?.resume(&last, &mut outputs)?;
        assert_eq!(resumed.history, whole.history[6..], "as if there had been no limit");
        let log = fs::read_to_string(folder.metrics_csv()).expect("a log");
        assert_eq!(log.lines().count(), 1 + whole.history.len(), "{log}");
    }
    Ok(())
}

/// Records its calls.
#[derive(Clone, Default)]
struct Told(Rc<RefCell<Vec<String>>>);

impl Callback for Told {
    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        let end = batches.first_batch + batches.losses.len();
        // Batches of a quarter of a second are reported together; only the last before a validation is known.
        if end.is_multiple_of(4) {
            self.0.borrow_mut().push(format!("batch {end}"));
        }
        Ok(())
    }
    fn on_validation_end(&mut self, run: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        let within = if validation.is_within_epoch { "within" } else { "at the end of" };
        self.0.borrow_mut().push(format!("validated {within} epoch {} after {} steps", run.epoch, run.n_steps));
        Ok(if run.epoch == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    }
    fn on_checkpoint(&mut self, _: &RunView<'_>, path: &Path) -> Result<(), Error> {
        if path.ends_with("last.safetensors") {
            self.0.borrow_mut().push("wrote last.safetensors".to_owned());
        }
        Ok(())
    }
}

#[test]
fn callbacks_and_the_log_have_each_validation() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let told = Told::default();
    outputs.callbacks.push(Box::new(told.clone()));
    let report = setting(config(Share(0.5))).ready().trainer(&cpu(1))?.fit(&mut outputs)?;
    assert_eq!((report.ended, report.n_epochs), (Ended::Callback, 1), "it ends within the second epoch");
    let expected = [
        "batch 4",
        "validated within epoch 1 after 0 steps",
        "batch 8",
        "validated at the end of epoch 1 after 8 steps",
        "batch 4",
        "validated within epoch 2 after 8 steps",
    ];
    // Checkpoints are written in parallel with the training, so callbacks are notified some time after the validation.
    let (written, others): (Vec<String>, Vec<String>) =
        told.0.borrow().iter().cloned().partition(|told| told.starts_with("wrote"));
    assert_eq!(others, expected, "what the callback was told of");
    assert_eq!(written, ["wrote last.safetensors"; 3], "a checkpoint for each validation");
    let log = fs::read_to_string(folder.metrics_csv()).expect("a log");
    let epochs: Vec<&str> = log.lines().map(|line| line.split(',').next().expect("a column")).collect();
    assert_eq!(epochs, ["epoch", "0.5", "1", "1.5"], "{log}");
    Ok(())
}

#[test]
fn swa_averages_the_ends_of_epochs_only() -> Result<(), Error> {
    let fit = |config: TrainerConfig| {
        let (mut model, (train, valid)) = (model(), (rows(0, 500), rows(500, 300)));
        Trainer::new(&cpu(1)).config(config).callback(Swa::from_epoch(1)).fit(&mut model, &Binary::new(), &train, &valid)?;
        Ok::<_, Error>(model.params().initial())
    };
    assert!(fit(config(Batches(3)))? == fit(Setting::default().config)?, "the same average");
    Ok(())
}

#[test]
fn a_report_has_validations_between_epochs() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a temporary folder");
    let path = root.path().join("report.html");
    let config = TrainerConfig { early_stopping: impatient(2), ..config(Share(0.25)) };
    let trainer = Trainer::new(&cpu(1)).config(config).report(&path);
    let report = { trainer }.fit(&mut model(), &Binary::new(), &rows(0, 500), &rows(500, 300))?;
    assert_eq!((report.n_epochs, report.history.len()), (0, 3));
    let html = fs::read_to_string(&path).expect("a report");
    let best = format!("{}", report.best_batch as f64 / 8.0);
    assert!(html.contains("0.75 epochs on ") && html.contains(&best), "three quarters of the first epoch");
    Ok(())
}

#[test]
fn replicas_validate_after_the_same_batch() -> Result<(), Error> {
    let early_stopping = Some(EarlyStopping::on("valid_auc").patience(4));
    for config in [
        config(Batches(3)),
        TrainerConfig { accumulate: 2, ..config(Share(0.25)) },
        TrainerConfig { early_stopping, schedule: Schedule::constant(0.03), max_epochs: 6, ..config(Batches(2)) },
        TrainerConfig { reduce_lr_on_plateau: Some(reducing()), accumulate: 2, ..config(Batches(2)) },
    ] {
        let single = setting(config.clone()).ready().fit(&cpu(1))?;
        for zero in [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Parameters] {
            let sharded = DataParallelConfig { zero, ..CONFIG };
            let runs = replicated(2, sharded, || cpu(1), || setting(config.clone()).ready())?;
            check_same_bits(&runs);
            check_alike(&single, &runs[0], 1e-5);
            assert_eq!(places(&runs[0].0), places(&single.0), "{zero:?}");
            assert_eq!(runs[0].0.ended, single.0.ended, "{zero:?}");
        }
    }
    Ok(())
}

#[test]
fn a_gpu_validates_within_an_epoch() -> Result<(), Error> {
    let Some(device) = gpu() else { return Ok(()) };
    let expected = setting(config(Batches(3))).ready().fit(&cpu(2))?;
    let found = setting(config(Batches(3))).ready().fit(&device)?;
    check_alike(&expected, &found, 1e-4);
    assert_eq!(places(&found.0), places(&expected.0));
    Ok(())
}
