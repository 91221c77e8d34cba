//! The end of a run, and the weights that it keeps.

use brisk_loader::Order;
use brisk_nn::Schedule;
use brisk_nn::tensor::Precision;
use brisk_train::metrics::roc_auc;
use brisk_train::{
    Checkpoint, EarlyStopping, Ended, Error, Feed, FeedConfig, FitReport, Outputs, Scorer, StopFlag, StopReason, TrainerConfig,
    Training,
};

use crate::gpu::cpu;
use crate::run::{Ready, Setting, after_each_epoch, history, into_folder, quiet};

/// Few rows and high rates: validation soon gets worse.
fn overfitting() -> Setting {
    let default = Setting::default();
    let schedule = Schedule::Constant { lr: 0.05 };
    let config =
        TrainerConfig { max_epochs: 60, early_stopping: Some(EarlyStopping::default().patience(3)), schedule, ..default.config };
    Setting { n_rows: 90, n_valid: 80, hidden: vec![40], config, ..default }
}

/// The validation AUC of the parameters on the device.
fn auc_now(ready: &Ready, trainer: &Training<'_>, device: &brisk_program::Device) -> Result<f64, Error> {
    let rows = Feed::new(device, "again", &ready.valid, Order::Sequential, 64, &FeedConfig::default())?;
    let scorer = Scorer::new(device, &ready.model, &ready.params, &rows, trainer.scale(), Precision::F32)?;
    Ok(roc_auc(&scorer.scores()?, ready.valid.labels())?)
}

fn check_best(report: &FitReport) {
    let best = history(report).iter().map(|(_, auc)| *auc).fold(f64::MIN, f64::max);
    assert_eq!(report.best_value, best, "the best of {:?}", report.history);
    let first = history(report).iter().position(|(_, auc)| *auc == best).map(|epoch| epoch + 1);
    assert_eq!(Some(report.best_epoch), first, "the first epoch that reached it");
}

#[test]
fn patience_ends_a_run_and_the_best_weights_come_back() -> Result<(), Error> {
    let (device, ready) = (cpu(2), overfitting().ready());
    let trainer = ready.trainer(&device)?;
    let report = trainer.fit(&mut quiet())?;
    check_best(&report);
    assert_eq!(report.ended, Ended::Early(StopReason::PatienceExhausted), "{report:?}");
    assert_eq!(report.n_epochs, report.best_epoch + 3, "three epochs without an improvement");
    let last = history(&report).last().expect("there were epochs").1;
    assert_ne!(last, report.best_value, "the last epoch was not the best, or this shows nothing");
    assert_eq!(auc_now(&ready, &trainer, &device)?, report.best_value, "scores are those of the best epoch");
    Ok(())
}

#[test]
fn checkpoints_hold_the_best_and_the_last_parameters() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let (device, ready) = (cpu(2), overfitting().ready());
    let trainer = ready.trainer(&device)?;
    let (mut outputs, folder) = into_folder(root.path());
    let report = trainer.fit(&mut outputs)?;

    let values: Vec<f32> = device.read(ready.params.values())?;
    let (best, last) = (Checkpoint::load(folder.best())?, Checkpoint::load(folder.last())?);
    for entry in ready.params.entries() {
        let in_best = best.f32(&entry.name, &entry.shape)?;
        assert_eq!(in_best, &values[entry.range.clone()], "`{}` is what the device has after the run", entry.name);
        assert_ne!(in_best, last.f32(&entry.name, &entry.shape)?, "`{}` went on changing", entry.name);
    }
    for checkpoint in [&best, &last] {
        for name in ["adam.m", "adam.v"] {
            assert!(checkpoint.f32(name, &[ready.params.len()])?.iter().any(|&value| value != 0.0), "`{name}` is kept too");
        }
        assert_eq!(checkpoint.f32("input.mean", &[5])?, trainer.scale().mean(), "to standardise the rows of another day");
        assert_eq!(checkpoint.f32("input.inv_std", &[5])?, trainer.scale().inv_std(), "to standardise the rows of another day");
        let settings: serde_json::Value = checkpoint.metadata("settings", "JSON")?;
        assert_eq!(settings["seed"], 1, "the run's seed");
    }
    let epochs = [&best, &last].map(|checkpoint| checkpoint.metadata::<usize>("epoch", "an epoch"));
    assert_eq!([report.best_epoch, report.n_epochs], epochs.map(|epoch| epoch.expect("it is there")), "their epochs");
    assert_eq!(last.metadata::<usize>("step", "a step")?, 2 * report.n_epochs, "90 rows are two batches of 64");
    assert_eq!(best.metadata::<f64>("valid_auc", "an AUC")?, report.best_value, "what made it the best");

    let log = std::fs::read_to_string(folder.metrics_csv()).expect("the log is there");
    assert_eq!(log.lines().count(), 1 + report.n_epochs, "a line an epoch, below a header");
    let left: Vec<_> =
        std::fs::read_dir(folder.path()).expect("it is there").map(|entry| entry.expect("it is there").file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().contains("tmp")), "nothing half-written: {left:?}");
    Ok(())
}

#[test]
fn no_patience_is_endless_patience() -> Result<(), Error> {
    let mut setting = overfitting();
    (setting.config.early_stopping, setting.config.max_epochs) = (None, 25);
    let report = setting.ready().fit(&cpu(2))?.0;
    check_best(&report);
    assert_eq!((report.ended, report.n_epochs), (Ended::MaxEpochs, 25), "every epoch was run");
    Ok(())
}

#[test]
fn a_wish_to_stop_ends_the_run_and_keeps_the_best_so_far() -> Result<(), Error> {
    let root = tempfile::tempdir().expect("a folder for a while");
    let (device, ready) = (cpu(2), overfitting().ready());
    let trainer = ready.trainer(&device)?;
    let (outputs, folder) = into_folder(root.path());
    let (stop, mut n_epochs) = (StopFlag::new(), 0);
    let progress = after_each_epoch({
        let stop = stop.clone();
        move || {
            n_epochs += 1;
            if n_epochs == 2 {
                stop.request();
            }
        }
    });
    let report = trainer.fit(&mut Outputs { progress, stop, ..outputs })?;
    check_best(&report);
    assert_eq!((report.ended, report.n_epochs), (Ended::Stopped, 2), "the third epoch was not begun");
    assert_eq!(auc_now(&ready, &trainer, &device)?, report.best_value, "scores are those of the best epoch");
    assert_eq!(Checkpoint::load(folder.last())?.metadata::<usize>("epoch", "an epoch")?, 2, "the last checkpoint is written");
    Ok(())
}

#[test]
fn a_wish_to_stop_before_the_first_epoch_is_an_error() -> Result<(), Error> {
    let ready = overfitting().ready();
    let outputs = &mut quiet();
    outputs.stop.request();
    let device = cpu(1);
    let error = ready.trainer(&device)?.fit(outputs).expect_err("there is nothing to keep");
    assert!(matches!(error, Error::NoEpoch { .. }), "{error:?}");
    Ok(())
}
