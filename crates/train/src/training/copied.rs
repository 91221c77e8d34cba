//! A run whose checkpoints are copied to a store.

use std::path::PathBuf;

use super::checkpoint_writer::{DueCheckpoint, WrittenCheckpoint};
use super::copies::{Copies, CopyQueue, Failure};
use super::fit::Fit;
use super::joint_copies::JointCopies;
use super::run_copies::RunCopies;
use super::{Outputs, Training};
use crate::checkpoint_store::{object_of, read_copy};
use crate::data_parallel::CheckpointFiles;
use crate::error::Error;
use crate::warning::Warning;

/// What errors call the setting.
const STORE: &str = "store of checkpoints";

impl Training<'_> {
    /// Starts to copy checkpoints, if there is a store.
    pub(super) fn start_copies(&self, outputs: &Outputs) -> Result<(), Error> {
        let is_joint = !self.replicas.is_single() && self.replicas.config.files == CheckpointFiles::OneAReplica;
        if is_joint {
            let name = outputs.store.as_ref().map_or_else(|| "none".to_owned(), |store| store.name_of(""));
            self.replicas.agree(vec![(STORE.to_owned(), name)])?;
        }
        let Some(store) = outputs.store.clone() else { return Ok(()) };
        if outputs.folder.is_none() {
            return Err(Error::setting(STORE, store.name_of(""), "a run with a folder, from which checkpoints are copied"));
        }
        let copies = match self.folder(outputs) {
            folder if is_joint => RunCopies::Joint(JointCopies::new(store, folder)),
            Some(folder) => {
                let failed = Error::io(folder.path(), "start a thread that copies checkpoints");
                RunCopies::Beside(Copies::start(store, folder).map_err(failed)?)
            }
            None => return Ok(()),
        };
        self.copies.replace(Some(copies));
        Ok(())
    }

    /// Checks that a new run does not replace the checkpoints of another one in the store. A store that cannot be read is a
    /// warning, since it may allow writing only.
    pub(super) fn check_store(&self, fit: &mut Fit) -> Result<(), Error> {
        let (Some(store), Some(folder)) = (fit.outputs.store.clone(), self.folder(fit.outputs)) else { return Ok(()) };
        let log = folder.metrics_csv();
        match read_copy(&*store, &log) {
            Ok(found) if found.as_ref().is_none_or(Vec::is_empty) => {}
            Ok(_) => {
                let found = format!("{}, which has the log of an earlier run", store.name_of(""));
                let expected = "an empty folder; or fetch that run by `RunFolder::fetch`, and resume it";
                return Err(Error::setting(STORE, found, expected));
            }
            Err(error) => {
                let object = store.name_of(&object_of(&log));
                self.warn(fit, Warning::NotCopied { object, reason: error.to_string() });
            }
        }
        Ok(())
    }

    /// Where checkpoints are submitted that have been written.
    pub(super) fn copy_queue(&self) -> Option<CopyQueue> {
        match &*self.copies.borrow() {
            Some(RunCopies::Beside(copies)) => Some(copies.queue.clone()),
            _ => None,
        }
    }

    /// Writes a checkpoint with the other replicas, and copies it if each of them has written a file.
    pub(super) fn save_together(&self, due: DueCheckpoint) -> Result<WrittenCheckpoint, Error> {
        let mut copies = self.copies.borrow_mut();
        let Some(RunCopies::Joint(joint)) = &mut *copies else {
            return due.write(|checkpoint, path| self.replicas.save(checkpoint, path, 0).map(drop));
        };
        let (path, replaced): (PathBuf, Vec<PathBuf>) = (due.path.clone(), due.replaced.clone());
        let generation = joint.generation(&path);
        let (newest, mut mine) = (*generation.as_ref().unwrap_or(&0), None);
        let written = due.write(|checkpoint, path| {
            // A file without tensors is not in the index.
            let file = self.replicas.save(checkpoint, path, newest)?;
            mine = file.filter(|_| checkpoint.tensors().next().is_some());
            Ok(())
        })?;
        joint.send(self.replicas, generation, mine.as_deref(), &path, &replaced)?;
        Ok(written)
    }

    /// Warns of copies that have failed.
    pub(super) fn warn_of_copies(&self, fit: &mut Fit) {
        let failures = match &*self.copies.borrow() {
            Some(RunCopies::Beside(copies)) => copies.new_failures(),
            Some(RunCopies::Joint(joint)) => {
                let has_told = |failure: &Failure| {
                    let of_object =
                        |warning: &Warning| matches!(warning, Warning::NotCopied { object, .. } if *object == failure.object);
                    fit.report.warnings.iter().any(of_object)
                };
                joint.failures().into_iter().filter(|failure| !has_told(failure)).collect()
            }
            None => return,
        };
        for Failure { object, reason } in failures {
            self.warn(fit, Warning::NotCopied { object, reason });
        }
    }

    /// Waits for the copies. Shows a warning, which is also returned, if some are missing.
    pub(super) fn finish_copies(&self, outputs: &mut Outputs) -> Option<Warning> {
        let mut copies = self.copies.borrow_mut();
        let failures = match &mut *copies {
            Some(RunCopies::Beside(copies)) => copies.wait(),
            Some(RunCopies::Joint(joint)) => joint.failures(),
            None => return None,
        };
        let reason = failures.last()?.reason.clone();
        let mut objects: Vec<String> = failures.into_iter().map(|failure| failure.object).collect();
        objects.dedup();
        let warning = Warning::CopiesMissing { objects, reason };
        self.show_warning(&warning, outputs);
        Some(warning)
    }
}
