//! Which checkpoints a run leaves, and when they are on disk: those of the best epochs and of time intervals, and none of a model
//! that has diverged.

use std::cell::RefCell;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brisk_nn::Schedule;
use brisk_train::{
    Callback, Checkpoint, DataParallelConfig, Ended, Error, FitReport, Outputs, RunFolder, RunView, StopFlag, TrainerConfig,
    WriteError, run_threads,
};

use crate::gpu::cpu;
use crate::run::{Setting, into_folder};

fn setting(config: TrainerConfig) -> Setting {
    Setting { config, ..Setting::default() }
}

/// The epochs of the `n` best values, the best first.
fn best(report: &FitReport, n: usize) -> Vec<(usize, f64)> {
    let mut ranked: Vec<(usize, f64)> =
        report.history.iter().map(|epoch| (epoch.epoch, epoch.get(&report.watched).expect("a metric"))).collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked.truncate(n);
    ranked
}

#[track_caller]
fn check_kept(folder: &RunFolder, expected: &[(usize, f64)]) -> Result<(), Error> {
    let mut expected = expected.to_vec();
    expected.sort_by_key(|&(epoch, _)| epoch);
    let paths = expected.iter().map(|&(epoch, value)| folder.best_of(epoch, "valid_auc", value));
    assert_eq!(folder.best_checkpoints()?, paths.collect::<Vec<_>>(), "one file an epoch");
    for (path, (epoch, value)) in folder.best_checkpoints()?.iter().zip(expected) {
        let checkpoint = Checkpoint::load(path)?;
        assert_eq!(checkpoint.metadata::<f64>("valid_auc", "a number")?, value, "epoch {epoch}");
    }
    Ok(())
}

#[test]
fn the_checkpoints_of_the_best_epochs_are_kept_also_when_resumed() -> Result<(), Error> {
    // A rate so high that the metric does not only improve.
    let config = TrainerConfig { max_epochs: 8, keep_best: 3, schedule: Schedule::constant(0.1), ..Setting::default().config };
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let whole = setting(config.clone()).ready().trainer(&cpu(2))?.fit(&mut outputs)?;
    check_kept(&folder, &best(&whole, 3))?;

    let (mut outputs, folder) = into_folder(root.path());
    let first = setting(TrainerConfig { max_epochs: 4, ..config.clone() });
    let report = first.ready().trainer(&cpu(2))?.fit(&mut outputs)?;
    check_kept(&folder, &best(&report, 3))?;
    let last = Checkpoint::load(folder.last())?;
    setting(config).ready().trainer(&cpu(2))?.resume(&last, &mut outputs)?;
    check_kept(&folder, &best(&whole, 3))?;
    assert!(folder.set_aside()?.is_some(), "they make room for a new run");
    check_kept(&folder, &[])
}

/// Counts checkpoints.
struct Counting(Arc<AtomicUsize>);

impl Callback for Counting {
    fn on_checkpoint(&mut self, run: &RunView<'_>, path: &Path) -> Result<(), Error> {
        self.0.fetch_add(usize::from(run.is_first && path.ends_with("last.safetensors")), Ordering::Relaxed);
        Ok(())
    }
}

fn n_saved(interval: Option<Duration>) -> Result<usize, Error> {
    let n_saved = Arc::new(AtomicUsize::new(0));
    let root = tempfile::tempdir().expect("a temporary folder");
    let (outputs, _) = into_folder(root.path());
    let mut outputs = Outputs { callbacks: vec![Box::new(Counting(n_saved.clone()))], ..outputs };
    let config = TrainerConfig { accumulate: 3, checkpoint_interval: interval, ..Setting::default().config };
    setting(config).ready().trainer(&cpu(2))?.fit(&mut outputs)?;
    Ok(n_saved.load(Ordering::Relaxed))
}

#[test]
fn checkpoints_are_written_after_an_interval() -> Result<(), Error> {
    assert_eq!(n_saved(None)?, 3, "one an epoch");
    assert_eq!(n_saved(Some(Duration::from_secs(3600)))?, 3, "the interval is not over");
    assert_eq!(n_saved(Some(Duration::ZERO))?, 3 * 3, "after each complete step of eight batches in threes");
    Ok(())
}

#[test]
fn replicas_have_no_common_clock() {
    let config = TrainerConfig { checkpoint_interval: Some(Duration::from_secs(60)), ..Setting::default().config };
    let error = run_threads(2, &DataParallelConfig::default(), |replica| {
        setting(config.clone()).ready().on_replica(&cpu(1), replica).map(drop)
    });
    let error = error.expect_err("an interval").to_string();
    assert!(error.contains("checkpoint_interval: found 60s") && error.contains("`checkpoint_every`"), "{error}");
}

#[test]
fn a_loss_that_is_not_finite_leaves_the_last_good_checkpoint() -> Result<(), Error> {
    let default = Setting::default();
    let n_batches = default.n_rows.div_ceil(default.config.batch_rows);
    let config =
        TrainerConfig { checkpoint_on_error: true, schedule: Schedule::step(1e-3, n_batches, 1e30), ..default.config.clone() };
    let root = tempfile::tempdir().expect("a temporary folder");
    let (mut outputs, folder) = into_folder(root.path());
    let ready = setting(config).ready();
    let error = ready.trainer(&cpu(2))?.fit(&mut outputs).expect_err("such a rate leads nowhere");
    assert!(matches!(error, Error::NonFiniteLoss { epoch: 2, .. }), "{error}");
    let last = Checkpoint::load(folder.last())?;
    assert_eq!(last.metadata::<usize>("epoch", "an epoch")?, 1, "after the first epoch");
    for entry in ready.params.entries() {
        assert!(last.f32(&entry.name, &entry.shape)?.iter().all(|value| value.is_finite()), "`{}`", entry.name);
    }
    Ok(())
}

/// Loads each checkpoint that it is notified of, and acts when the second epoch starts.
struct Watching<F> {
    written: Rc<RefCell<Vec<String>>>,
    at_second_epoch: F,
}

impl<F: FnMut()> Callback for Watching<F> {
    fn on_epoch_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        if run.epoch == 2 {
            (self.at_second_epoch)();
        }
        Ok(())
    }

    fn on_checkpoint(&mut self, run: &RunView<'_>, path: &Path) -> Result<(), Error> {
        // A test may have put a folder at its path.
        if path.is_file() {
            let checkpoint = Checkpoint::load(path)?;
            let expected = (run.epoch, run.n_steps);
            let found = (checkpoint.metadata("epoch", "a number")?, checkpoint.metadata("step", "a number")?);
            assert_eq!(found, expected, "epoch and step");
        }
        let name = path.file_name().expect("a file").to_string_lossy();
        self.written.borrow_mut().push(format!("{} {}", run.epoch, name.split(['.', '-']).next().unwrap_or_default()));
        Ok(())
    }
}

/// A run into a new folder that acts when its second epoch starts; returns the checkpoints that callbacks were notified of, and
/// the names of all files.
fn watched(
    config: TrainerConfig,
    mut at_second_epoch: impl FnMut(&RunFolder, &StopFlag),
    check: impl FnOnce(&mut dyn FnMut() -> Result<FitReport, Error>, &RunFolder),
) -> (Vec<String>, Vec<String>) {
    let root = tempfile::tempdir().expect("a temporary folder");
    let (outputs, folder) = into_folder(root.path());
    let (written, stop) = (Rc::default(), outputs.stop.clone());
    let watching = Watching { written: Rc::clone(&written), at_second_epoch: || at_second_epoch(&folder, &stop) };
    let mut outputs = Outputs { callbacks: vec![Box::new(watching)], ..outputs };
    let (ready, device) = (setting(config).ready(), cpu(2));
    let training = ready.trainer(&device).expect("a valid setting");
    check(&mut || training.fit(&mut outputs), &folder);
    drop(outputs);
    let names = fs::read_dir(folder.path()).expect("the folder").map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    (written.take(), names)
}

/// Waits for a file that the run is writing.
fn wait_for(path: &Path) {
    while !path.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_stopped_run_has_its_checkpoints_on_disk_in_order() {
    let config = TrainerConfig { keep_best: 1, ..Setting::default().config };
    let (written, _) = watched(
        config,
        |_, stop| stop.request(),
        |fit, folder| {
            assert_eq!(fit().expect("it is stopped after an epoch").ended, Ended::Stopped);
            for path in [folder.best(), folder.last()] {
                Checkpoint::load(path).expect("it is on disk");
            }
        },
    );
    assert_eq!(written, ["1 epoch", "1 best", "1 last", "1 last"], "those of the first epoch, then that of the stop");
}

#[test]
fn a_checkpoint_that_cannot_be_written_ends_the_run() {
    // At the end of the epoch, or before the one after the next.
    for max_epochs in [2, 50] {
        let mut before = PathBuf::new();
        let config = TrainerConfig { max_epochs, ..Setting::default().config };
        let in_the_way = |folder: &RunFolder, _: &StopFlag| {
            wait_for(&folder.last());
            before = folder.path().join("before");
            fs::rename(folder.last(), &before).expect("it was written");
            fs::create_dir(folder.last()).expect("it was moved");
        };
        let (written, names) = watched(config, in_the_way, |fit, folder| {
            let error = fit().expect_err("a folder is in the way");
            assert!(matches!(&error, Error::Write(WriteError::IsFolder { path }) if *path == folder.last()), "{error}");
            let rows = fs::read_to_string(folder.metrics_csv()).expect("a log");
            assert!((3..=4).contains(&rows.lines().count()), "two epochs or three:\n{rows}");
            Checkpoint::load(folder.best()).expect("it is intact");
            Checkpoint::load(folder.path().join("before")).expect("it is intact");
        });
        assert_eq!(written.iter().filter(|written| written.ends_with("last")).count(), 1, "{written:?}");
        let expected = ["before", "best.safetensors", "last.safetensors", "metrics.csv", "metrics.json", "run.lock"];
        assert_eq!(names, expected, "no part of a file is left");
    }
}

#[test]
fn a_panic_waits_for_the_checkpoints_that_are_due() {
    let (_, names) = watched(
        Setting::default().config,
        |_, _| panic!("of the second epoch"),
        |fit, folder| {
            catch_unwind(AssertUnwindSafe(fit)).expect_err("the callback panics");
            Checkpoint::load(folder.last()).expect("it is on disk");
        },
    );
    assert!(names.iter().all(|name| !name.ends_with(".tmp")), "{names:?}");
}
