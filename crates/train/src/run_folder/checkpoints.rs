//! The checkpoints in a run's folder: finds the one to resume from, and moves unusable ones aside.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::RunFolder;
use crate::checkpoint::Checkpoint;
use crate::checkpoint::index::{Index, files_of, stem_and_generation};
use crate::checkpoint::source::Source;
use crate::error::Error;

/// The result of [`RunFolder::find_checkpoint`].
#[derive(Debug)]
pub struct FoundCheckpoint {
    /// The newest checkpoint that is intact, and its path.
    pub newest: Option<(PathBuf, Checkpoint)>,
    /// Why other checkpoints in the folder cannot be used: an [`Error::Damaged`] or [`Error::WrongFile`] for each.
    pub damaged: Vec<Error>,
}

impl RunFolder {
    /// Loads the newest intact checkpoint, `last.safetensors` or `best.safetensors`. Damaged ones are skipped and listed.
    ///
    /// [`RunFolder::lock`] the folder first, so that no other run changes it.
    ///
    /// # Errors
    /// For a checkpoint that is intact but cannot be used here, [`Error::WrongFile`], [`Error::CheckpointEntry`]; [`Error::Io`].
    pub fn find_checkpoint(&self) -> Result<FoundCheckpoint, Error> {
        let mut newest: Option<((usize, usize), PathBuf, Checkpoint)> = None;
        let mut damaged = Vec::new();
        for path in [self.best(), self.last()] {
            if !path.exists() && !Index::path_of(&path).exists() {
                continue;
            }
            match Checkpoint::load(&path) {
                Ok(checkpoint) => {
                    let at = position(&checkpoint)?;
                    if newest.as_ref().is_none_or(|(other, ..)| *other <= at) {
                        newest = Some((at, path, checkpoint));
                    }
                }
                Err(error) if is_unusable(&error) => damaged.push(error),
                Err(error) => return Err(error),
            }
        }
        Ok(FoundCheckpoint { newest: newest.map(|(_, path, checkpoint)| (path, checkpoint)), damaged })
    }

    /// `last.safetensors` and `best.safetensors`, as far as they are there, the newest first: what each replica tries to
    /// [load](crate::Training::load_checkpoint) in turn, until one is intact. Only the heads of the files are read. A checkpoint
    /// whose head cannot be read is the first; loading it returns the reason.
    pub fn newest_first(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for path in [self.last(), self.best()] {
            match position_in(Source::Folder, &path) {
                Ok(None) => {}
                Ok(Some(at)) => found.push((Some(at), path)),
                Err(_) => found.push((None, path)),
            }
        }
        found.sort_by_key(|(at, _)| at.map(Reverse));
        found.into_iter().map(|(_, path)| path).collect()
    }

    /// The checkpoints of the [best models](crate::TrainerConfig::keep_best), by epoch and batch, without `best.safetensors`.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn best_checkpoints(&self) -> Result<Vec<PathBuf>, Error> {
        let failed = Error::io(self.path(), "list the checkpoints");
        let mut found = Vec::new();
        for entry in fs::read_dir(self.path()).map_err(&failed)? {
            let name = entry.map_err(&failed)?.file_name();
            let name = name.to_str().unwrap_or_default();
            // A checkpoint of several files is found by its index.
            let name = name.strip_suffix(".index.json").unwrap_or(name);
            let at =
                name.strip_prefix("epoch-").filter(|_| name.ends_with(".safetensors") && stem_and_generation(name).is_none());
            if let Some((epoch, batch)) = at.and_then(epoch_and_batch) {
                found.push((epoch, batch, self.path().join(name)));
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found.into_iter().map(|(.., path)| path).collect())
    }

    /// Makes room for a new run where an earlier one left nothing to resume from: moves its log and its checkpoints, and copies
    /// its `config.json`, into a new subfolder `earlier-1`, `earlier-2` and so on. Returns the subfolder; `None` if there was
    /// nothing to move. A log without rows does not count, as a new run reuses it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn set_aside(&self) -> Result<Option<PathBuf>, Error> {
        let has_rows = |path: &PathBuf| fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
        let logs = [self.metrics_csv(), self.metrics_json()];
        let mut moved: Vec<PathBuf> = if logs.iter().any(has_rows) { logs.into() } else { Vec::new() };
        for checkpoint in self.best_checkpoints()?.into_iter().chain([self.best(), self.last()]) {
            moved.extend(files_of(&checkpoint).into_iter().map(|(_, file)| file));
            moved.extend([Index::path_of(&checkpoint), checkpoint]);
        }
        moved.retain(|path| path.exists());
        if moved.is_empty() {
            return Ok(None);
        }
        let folder = self.new_subfolder()?;
        let target = |path: &PathBuf| folder.join(path.file_name().expect("each was named in or found in the folder"));
        let action = "move it aside";
        if self.config().exists() {
            fs::copy(self.config(), target(&self.config())).map_err(Error::io(&self.config(), action))?;
        }
        for path in moved {
            fs::rename(&path, target(&path)).map_err(Error::io(&path, action))?;
        }
        Ok(Some(folder))
    }

    fn new_subfolder(&self) -> Result<PathBuf, Error> {
        let mut number = 1_u64;
        loop {
            let folder = self.path().join(format!("earlier-{number}"));
            match fs::create_dir(&folder) {
                Ok(()) => return Ok(folder),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(cause) => return Err(Error::io(&folder, "create the folder")(cause)),
            }
        }
    }
}

/// Whether an error is that of a file which is no checkpoint, or no longer: another checkpoint may be intact.
pub(super) fn is_unusable(error: &Error) -> bool {
    matches!(error, Error::Damaged { .. } | Error::WrongFile { .. })
}

/// The finished epochs of the run that wrote a checkpoint, and the finished batches of the epoch that follows.
pub(super) fn position(checkpoint: &Checkpoint) -> Result<(usize, usize), Error> {
    let epoch = checkpoint.metadata("epoch", "a number of epochs")?;
    Ok((epoch, checkpoint.metadata_if_any("batch", "a number of batches")?.unwrap_or(0)))
}

/// The same of the checkpoint at `path`; `None` if it is not there. Only the heads of its files are read.
pub(super) fn position_in(source: Source<'_>, path: &Path) -> Result<Option<(usize, usize)>, Error> {
    Checkpoint::strings_in(source, path)?.map(|strings| position(&strings)).transpose()
}

/// The epoch in a name such as `7-valid_auc-0.93` or `7-batch-120-valid_auc-0.93`, and the batch, before its epoch's end.
fn epoch_and_batch(name: &str) -> Option<(usize, usize)> {
    let (epoch, rest) = name.split_once('-')?;
    let batch = rest.strip_prefix("batch-").and_then(|rest| rest.split('-').next()?.parse().ok());
    Some((epoch.parse().ok()?, batch.unwrap_or(usize::MAX)))
}
