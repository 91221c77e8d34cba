//! Which checkpoints a run leaves: the best epochs, those of the clock, and none of a model that has diverged.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use brisk_nn::Schedule;
use brisk_train::{
    Callback, Checkpoint, DataParallelConfig, Error, FitReport, Outputs, RunFolder, RunView, TrainerConfig, run_threads,
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
    // So fast that the metric does not only improve.
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
