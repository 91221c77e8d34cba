//! The run's folder, and the checkpoint in it that a run goes on from.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};
use brisk_examples::print::note;
use brisk_train::{Checkpoint, RunFolder};
use serde_json::Value;

use crate::options::{Options, Resume};

/// Where the run's files go, and which of them it goes on from.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) folder: RunFolder,
    pub(crate) checkpoint: Option<PathBuf>,
}

/// Finds or makes the folder of a run with the settings `config`.
pub(crate) fn found(options: &Options, config: &Value) -> Result<Place> {
    let before = match (&options.out, &options.resume) {
        (_, Resume::From(path)) => Some(RunFolder::open(path.parent().unwrap_or(Path::new("")))?),
        (Some(out), _) => RunFolder::open(out).ok(),
        (None, Resume::Auto) => newest_of(&options.run.runs, config),
        (None, Resume::No) => None,
    };
    if let (Some(folder), Resume::No) = (&before, &options.resume) {
        bail!("{} holds a run already; go on with it by `--resume auto`, or name another folder", folder.path().display());
    }
    let checkpoint = match &options.resume {
        Resume::No => None,
        Resume::Auto => before.as_ref().and_then(newest_checkpoint),
        Resume::From(path) => Some(path.clone()),
    };
    let folder = match (before, &options.out) {
        (Some(folder), _) => folder,
        (None, Some(out)) => RunFolder::create_at(out)?,
        (None, None) => RunFolder::create(&options.run.runs, Some(options.run.run_name()), SystemTime::now())?,
    };
    folder.write_config(config)?;
    Ok(Place { folder, checkpoint })
}

/// The latest run in `runs` that had these settings.
fn newest_of(runs: &Path, config: &Value) -> Option<RunFolder> {
    let folders = fs::read_dir(runs).ok()?.flatten().filter_map(|entry| RunFolder::open(&entry.path()).ok());
    let ours = settings(config.to_string().as_bytes());
    let alike = folders.filter(|folder| fs::read(folder.config()).is_ok_and(|theirs| settings(&theirs) == ours));
    alike.max_by_key(|folder| fs::metadata(folder.config()).and_then(|file| file.modified()).ok())
}

/// What is said of a run but for where it ran: it may go on elsewhere, on another number of replicas, that share more or less.
fn settings(config: &[u8]) -> Option<Value> {
    let mut config: Value = serde_json::from_slice(config).ok()?;
    let fields = config.as_object_mut()?;
    ["device", "replicas", "zero"].iter().for_each(|name| drop(fields.remove(*name)));
    Some(config)
}

/// The checkpoint that is furthest, among those that are whole.
fn newest_checkpoint(folder: &RunFolder) -> Option<PathBuf> {
    let stands = |path: PathBuf| {
        let at = Checkpoint::load(&path).and_then(|checkpoint| {
            // A checkpoint between two epochs says nothing of batches.
            let n_batches: usize = checkpoint.metadata("batch", "a number of batches").unwrap_or(0);
            Ok((checkpoint.metadata::<usize>("epoch", "a number of epochs")?, n_batches))
        });
        match at {
            Ok(at) => Some((at, path)),
            Err(error) => {
                note(format_args!("passed over: {error}"));
                None
            }
        }
    };
    let there = [folder.best(), folder.last()].into_iter().filter(|path| path.is_file());
    there.filter_map(stands).max_by_key(|(at, _)| *at).map(|(_, path)| path)
}

/// What a run goes on from.
pub(crate) fn load(path: &Path) -> Result<Checkpoint> {
    Checkpoint::load(path).with_context(|| format!("--resume {}", path.display()))
}
