//! Learning rates that fall when a metric no longer improves.

use std::sync::{Arc, Mutex};

use brisk_loader::Order;
use brisk_nn::{Schedule, Sgd};
use brisk_train::metrics::Direction::{self, Maximize, Minimize};
use brisk_train::{
    BatchesEnd, Binary, Callback, Checkpoint, DataParallelConfig, EarlyStopping, Error, Feed, FeedConfig, FitReport,
    PlateauState, Precision, ReduceLrOnPlateau, ResumeMismatch, RunFolder, RunView, Standardisation, Step, ThresholdMode,
    Trainer, ValidationInterval, Warning, run_threads,
};

use ThresholdMode::{Absolute, Relative};

use crate::misuse::{cpu, line, rows};

const NAN: f64 = f64::NAN;

/// Takes the values with `lr`, and checks after which of them, from 0, the rate changes to what, and the state at the end. The
/// expected numbers are those of PyTorch 2.15.
#[track_caller]
fn check(plateau: ReduceLrOnPlateau, lr: f64, values: &[f64], expected: &[(usize, f64)], state: (f64, usize, usize)) {
    let (mut plateau, mut reduced) = (plateau, Vec::new());
    for (i, &value) in values.iter().enumerate() {
        if plateau.step(value, lr) {
            reduced.push((i, plateau.rate(lr) as f32));
        }
    }
    let expected: Vec<(usize, f32)> = expected.iter().map(|&(i, rate)| (i, rate as f32)).collect();
    assert_eq!(reduced, expected, "after {values:?}");
    let PlateauState { best, n_bad, cooldown_left, .. } = plateau.state;
    assert_eq!((best, n_bad, cooldown_left), (Some(state.0), state.1, state.2), "the state after {values:?}");
}

#[test]
fn rates_and_counts_are_pytorchs() {
    let losses =
        [1.0, 0.9, 0.8999, 0.91, 0.89995, 0.95, 0.8, 0.8, 0.8, 0.81, 0.79999, 0.8, 0.8, 0.8, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7];
    let scores = [
        0.5, 0.6, 0.60003, 0.60005, 0.60009, 0.5, 0.7, 0.701, 0.702, NAN, 0.703, 0.71, 0.705, 0.709, 0.7, 0.8, 0.79, 0.79, 0.79,
        0.79,
    ];
    let of = |direction: Direction, factor, patience| ReduceLrOnPlateau::new(direction).factor(factor).patience(patience);
    let (min, max) = (|factor, patience| of(Minimize, factor, patience), |factor, patience| of(Maximize, factor, patience));
    let rates = [(4, 0.01), (8, 1e-3), (10, 1e-4), (12, 1e-5), (16, 1e-6), (18, 1e-7)];
    check(min(0.1, 1), 0.1, &losses, &rates, (0.7, 1, 0));
    check(min(0.5, 2).cooldown(2), 0.1, &losses, &[(5, 0.05), (10, 0.025), (17, 0.0125)], (0.7, 0, 0));
    let bounded = min(0.5, 0).cooldown(1).min_lr(0.02);
    check(bounded, 0.1, &losses, &[(3, 0.05), (5, 0.025), (7, 0.02)], (0.7, 0, 1));
    let rates = [(3, 0.03), (5, 0.009), (8, 0.0027), (10, 0.00081), (12, 0.000243), (16, 7.29e-5), (18, 2.187e-5)];
    check(min(0.3, 1).threshold(0.05, Absolute), 0.1, &losses, &rates, (0.7, 1, 0));
    check(min(0.1, 0), 1e-6, &losses, &[(3, 1e-7), (4, 1e-8)], (0.7, 0, 0));
    let any_change = ReduceLrOnPlateau { eps: 0.0, ..min(0.1, 0).min_lr(1e-9) };
    check(any_change, 1e-6, &losses, &[(3, 1e-7), (4, 1e-8), (5, 1e-9)], (0.7, 0, 0));
    check(max(0.1, 2), 0.1, &scores, &[(14, 0.01), (18, 1e-3)], (0.8, 1, 0));
    let absolute = max(0.2, 1).threshold(0.01, Absolute).cooldown(3).min_lr(1e-3);
    check(absolute, 0.1, &scores, &[(3, 0.02), (8, 0.004), (13, 1e-3)], (0.8, 0, 2));
    let relative = max(0.5, 1).threshold(0.02, Relative).cooldown(1);
    check(relative, 0.1, &scores, &[(3, 0.05), (8, 0.025), (11, 0.0125), (14, 0.00625), (17, 0.003125)], (0.8, 1, 0));
    check(min(0.5, 0), 0.1, &[-1.0, -1.1, -1.09999, -1.2, -1.2, -1.2, -1.19], &[(6, 0.05)], (-1.2, 0, 0));
    let odd = [NAN, NAN, NAN, 1.0, NAN, f64::INFINITY, 2.0];
    check(min(0.5, 1), 0.1, &odd, &[(1, 0.05), (5, 0.025)], (1.0, 1, 0));
}

#[test]
fn the_schedules_own_low_rates_are_kept() {
    let mut plateau = ReduceLrOnPlateau::default().patience(0).min_lr(0.01);
    assert!(!plateau.step(1.0, 0.1) && plateau.step(1.0, 0.1), "the second value is no improvement");
    let rates = [0.0, 0.005, 0.02, 0.1, 0.5].map(|lr| plateau.rate(lr) as f32);
    assert_eq!(rates, [0.0, 0.005, 0.01, 0.01, 0.05], "a warm-up below `min_lr`, and higher rates");
    assert!(!plateau.step(1.0, 0.005), "that rate is already below `min_lr`");
}

/// Five epochs of six batches, each validation but the first without an improvement.
fn trainer() -> Trainer<'static> {
    let never_better = ReduceLrOnPlateau::on("valid_loss").factor(0.5).patience(0).threshold(9.0, Absolute);
    Trainer::new(&cpu()).batch_rows(8).max_epochs(5).learning_rate(0.25).reduce_lr_on_plateau(never_better)
}

fn fit(mut trainer: Trainer<'_>) -> Result<FitReport, Error> {
    trainer.fit(&mut line(), &Binary::new(), &rows(48), &rows(20))
}

/// Collects the learning rate of each batch.
#[derive(Clone, Default)]
struct Rates(Arc<Mutex<Vec<f32>>>);

impl Callback for Rates {
    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        self.0.lock().expect("no panic").extend(batches.learning_rates);
        Ok(())
    }
}

fn rates_of(trainer: Trainer<'_>) -> Result<Vec<f32>, Error> {
    let rates = Rates::default();
    fit(trainer.callback(rates.clone()))?;
    Ok(rates.0.lock().expect("no panic").clone())
}

#[test]
fn a_reduction_is_for_all_steps_after_the_validation() -> Result<(), Error> {
    let of_epochs = |scales: [f32; 5]| scales.map(|scale| [0.25 * scale; 6]).as_flattened().to_vec();
    assert_eq!(rates_of(trainer())?, of_epochs([1.0, 1.0, 0.5, 0.25, 0.125]), "after the second validation, and each further");
    let rarely = trainer().configure(|config| config.validate_every = 2);
    assert_eq!(rates_of(rarely)?, of_epochs([1.0, 1.0, 1.0, 1.0, 0.5]), "validations count, not epochs");

    // Validations after four batches, that is after two steps, and after six.
    let within = || trainer().configure(|config| config.validate_within_epoch = Some(ValidationInterval::Batches(3)));
    let found = rates_of(within().accumulate(2).max_epochs(2))?;
    assert_eq!(found, [[0.25; 6], [0.125, 0.125, 0.125, 0.125, 0.0625, 0.0625]].as_flattened(), "also within the epoch");

    let schedule = Schedule::cosine(0.25).warmup(8);
    let found = rates_of(trainer().schedule(schedule.clone()))?;
    let scales = [1.0, 1.0, 0.5, 0.25, 0.125];
    let expected: Vec<f32> = (0..30).map(|step| (schedule.rate(step, 30) * scales[step / 6]) as f32).collect();
    assert_eq!(found, expected, "the schedule continues at a fraction of its rates");
    Ok(())
}

#[test]
fn any_metric_of_the_run_may_decide() -> Result<(), Error> {
    let accuracy = || EarlyStopping::on("valid_accuracy").patience(99);
    let mut all = Vec::new();
    for (monitor, mode, metric, direction) in [
        (None, None, "valid_accuracy", Maximize),
        (Some("valid_loss"), None, "valid_loss", Minimize),
        (Some("train_loss"), Some(Maximize), "train_loss", Maximize),
    ] {
        let monitor = monitor.map(str::to_owned);
        let plateau = ReduceLrOnPlateau { monitor, direction: mode, ..ReduceLrOnPlateau::default().factor(0.5).patience(0) };
        let rates = Rates::default();
        let trainer =
            trainer().learning_rate(0.02).reduce_lr_on_plateau(plateau).early_stopping(accuracy()).callback(rates.clone());
        let report = fit(trainer)?;
        assert_eq!(report.watched, "valid_accuracy", "the best model is that of early stopping");
        let mut by_hand = ReduceLrOnPlateau::new(direction).factor(0.5).patience(0);
        let expected = report.history.iter().flat_map(|epoch| {
            let rate = by_hand.rate(0.02) as f32;
            by_hand.step(epoch.get(metric).expect("a metric of the run"), 0.02);
            [rate; 6]
        });
        let expected: Vec<f32> = expected.collect();
        assert_eq!(*rates.0.lock().expect("no panic"), expected, "{metric}");
        all.push(expected);
    }
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2], "the metrics decide differently: {all:?}");
    Ok(())
}

#[test]
fn a_resumed_run_is_bit_identical() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder");
    let folder = |name: &str| RunFolder::create_at(&root.path().join(name));
    let cooling = || {
        let plateau = ReduceLrOnPlateau::on("valid_loss").factor(0.5).patience(1).threshold(9.0, Absolute).cooldown(1);
        trainer().reduce_lr_on_plateau(plateau).max_epochs(9)
    };
    let whole = folder("whole")?;
    fit(cooling().folder(&whole))?;
    let read =
        |run: &RunFolder| (std::fs::read(run.last()).expect("a checkpoint"), std::fs::read(run.metrics_csv()).expect("a log"));
    for n_epochs in [1, 3, 4, 5, 8] {
        let run = folder(&n_epochs.to_string())?;
        fit(cooling().folder(&run).max_epochs(n_epochs))?;
        let checkpoint = Checkpoint::load(run.last())?;
        cooling().folder(&run).resume(&mut line(), &checkpoint, &Binary::new(), &rows(48), &rows(20))?;
        assert!(read(&run) == read(&whole), "resumed after {n_epochs} epochs: another checkpoint or log");
    }
    let log = String::from_utf8(read(&whole).1).expect("text");
    let lr: Vec<&str> = log.lines().skip(1).filter_map(|line| line.split(',').nth(1)).collect();
    assert_eq!(lr, ["0.25", "0.25", "0.25", "0.125", "0.125", "0.125", "0.0625", "0.0625", "0.0625"], "{log}");
    Ok(())
}

#[test]
fn it_is_a_setting_that_a_resumed_run_has() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder");
    let run = RunFolder::create_at(&root.path().join("run"))?;
    fit(trainer().folder(&run).max_epochs(3))?;
    let with = Checkpoint::load(run.last())?;
    let run = RunFolder::create_at(&root.path().join("without"))?;
    fit(trainer().configure(|config| config.reduce_lr_on_plateau = None).folder(&run).max_epochs(3))?;
    let mut without = Checkpoint::load(run.last())?;
    let resume = |mut trainer: Trainer<'_>, checkpoint: &Checkpoint| {
        trainer.resume(&mut line(), checkpoint, &Binary::new(), &rows(48), &rows(20))
    };
    let slower =
        || trainer().reduce_lr_on_plateau(ReduceLrOnPlateau::on("valid_loss").factor(0.5).patience(1).threshold(9.0, Absolute));
    let error = resume(slower(), &with).expect_err("another patience").to_string();
    assert!(error.contains("reduce_lr_on_plateau.patience: 0 in the checkpoint, 1 here"), "{error}");
    let error = resume(trainer(), &without).expect_err("a setting that the checkpoint does not have").to_string();
    assert!(error.contains("reduce_lr_on_plateau"), "{error}");
    resume(trainer().resume_anyway(&[ResumeMismatch::Settings]), &without)?;

    // A checkpoint of a version without the setting.
    let settings: String = without.metadata("settings", "JSON")?;
    let older = settings.replace("\"reduce_lr_on_plateau\":null,", "");
    assert_ne!(older, settings, "the setting is recorded");
    without.insert_metadata("settings", older);
    resume(trainer().configure(|config| config.reduce_lr_on_plateau = None), &without)?;

    for (name, value) in [("plateau.n_reductions", "99"), ("plateau.n_bad", "99"), ("plateau.best", "NaN")] {
        let mut forged = with.clone();
        forged.insert_metadata(name, value);
        let error = resume(trainer(), &forged).expect_err(value).to_string();
        assert!(error.contains("the state of `reduce_lr_on_plateau`"), "{name} {value}: {error}");
    }
    Ok(())
}

#[test]
fn replicas_reduce_at_the_same_validation() -> Result<(), Error> {
    let within = || trainer().configure(|config| config.validate_within_epoch = Some(ValidationInterval::Batches(4)));
    let single = rates_of(within())?;
    let of_replicas = run_threads(2, &DataParallelConfig::default(), |replica| rates_of(within().replicas(replica)))?;
    assert_eq!(of_replicas, [single.clone(), single], "the same rates");
    Ok(())
}

#[test]
fn settings_that_cannot_be_right_are_refused() {
    let with = |change: fn(&mut ReduceLrOnPlateau)| {
        let mut plateau = ReduceLrOnPlateau::default();
        change(&mut plateau);
        fit(trainer().reduce_lr_on_plateau(plateau)).expect_err("it cannot be right").to_string()
    };
    for (error, words) in [
        (with(|plateau| plateau.factor = 1.0), ["reduce_lr_on_plateau.factor", "1"]),
        (with(|plateau| plateau.factor = 0.0), ["reduce_lr_on_plateau.factor", "0"]),
        (with(|plateau| plateau.factor = NAN), ["reduce_lr_on_plateau.factor", "NaN"]),
        (with(|plateau| plateau.threshold = -0.1), ["reduce_lr_on_plateau.threshold", "-0.1"]),
        (with(|plateau| plateau.threshold = 1.0), ["reduce_lr_on_plateau.threshold", "1"]),
        (with(|plateau| plateau.min_lr = -1.0), ["reduce_lr_on_plateau.min_lr", "-1"]),
        (with(|plateau| plateau.eps = f64::INFINITY), ["reduce_lr_on_plateau.eps", "inf"]),
        (
            with(|plateau| plateau.monitor = Some("valid_los".to_owned())),
            ["reduce_lr_on_plateau.monitor: found `valid_los`", "did you mean `valid_loss`?"],
        ),
    ] {
        assert!(words.iter().all(|word| error.contains(word)), "{error}, expected {words:?}");
    }
}

#[test]
fn settings_without_effect_are_named() -> Result<(), Error> {
    let plateau = |patience| ReduceLrOnPlateau::default().patience(patience);
    let of = |trainer: Trainer<'_>| {
        let settings = fit(trainer)?.warnings.into_iter().filter_map(|warning| match warning {
            Warning::NoEffect { setting, .. } => Some(setting),
            _ => None,
        });
        Ok::<_, Error>(settings.collect::<Vec<_>>())
    };
    let (patience, min_lr) = ("reduce_lr_on_plateau.patience", "reduce_lr_on_plateau.min_lr");
    for (found, expected, why) in [
        (of(trainer().reduce_lr_on_plateau(plateau(2)))?, &[][..], "five validations: one, three bad ones, and steps"),
        (of(trainer().reduce_lr_on_plateau(plateau(3)))?, &[patience], "no steps after the reduction"),
        (of(trainer().max_steps(24).reduce_lr_on_plateau(plateau(2)))?, &[patience], "four validations"),
        (of(trainer().reduce_lr_on_plateau(plateau(0).min_lr(0.25)))?, &[min_lr], "no rate is above it"),
        (of(trainer().early_stopping(EarlyStopping::default()).reduce_lr_on_plateau(plateau(2)))?, &[patience], "it ends before"),
        (of(trainer().early_stopping(EarlyStopping::default()).reduce_lr_on_plateau(plateau(1)))?, &[], "it ends later"),
        (of(trainer().fast_dev_run(2).max_epochs(1))?, &[], "a fast run has none"),
    ] {
        assert_eq!(found, expected, "{why}");
    }
    Ok(())
}

#[test]
fn a_step_of_your_own_has_reduced_rates() -> Result<(), Error> {
    let (device, rows) = (cpu(), rows(40));
    let feed = Feed::new(&device, "rows", &rows, Order::Sequential, 8, &FeedConfig::default())?;
    let scale = Standardisation::of("rows", &rows)?;
    let trained = |lr: f64, factor: f64| {
        let model = line();
        let (module, sgd) = (model.module().clone(), Sgd::new(model.params()));
        let step = Step::over(&device, &feed, &scale).precision(Precision::F32);
        let step = step.train(model.params(), &sgd, &Schedule::constant(lr)).record(|batch, params| {
            let y = module.forward(&params[0], &batch.x).squeeze(1);
            y.mse_loss(&batch.labels, &batch.weights, Default::default())
        })?;
        step.scale_rates(factor)?;
        step.run_epoch(0)?;
        Ok::<_, Error>(model.params().newest()?)
    };
    let mut plateau = ReduceLrOnPlateau::new(Minimize).factor(0.5).patience(0);
    assert!(!plateau.step(1.0, 0.5) && plateau.step(1.0, 0.5), "the second value is no improvement");
    assert!(trained(0.5, plateau.rate(0.5) / 0.5)? == trained(0.25, 1.0)?, "half the rate");
    assert!(trained(0.5, 1.0)? != trained(0.25, 1.0)?, "the rate matters");
    let error = trained(0.5, NAN).expect_err("no factor").to_string();
    assert!(error.contains("factor: found NaN"), "{error}");
    Ok(())
}
