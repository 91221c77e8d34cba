//! The thread that writes the checkpoints of a run while training continues.

#[cfg(test)]
mod tests;

use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender, TryRecvError};
use std::thread::{self, JoinHandle};

use super::copies::CopyQueue;
use crate::checkpoint::Checkpoint;
use crate::checkpoint::index::{Index, files_of};
use crate::data_parallel::DataParallel;
use crate::error::Error;

#[derive(Debug)]
pub(super) struct DueCheckpoint {
    pub(super) checkpoint: Checkpoint,
    pub(super) path: PathBuf,
    /// Earlier checkpoints, removed once this one is on disk.
    pub(super) replaced: Vec<PathBuf>,
    /// Where it is submitted once it is on disk, to be copied.
    pub(super) copies: Option<CopyQueue>,
    /// The run's finished epochs, and the steps in them.
    pub(super) n_epochs: usize,
    pub(super) n_steps: usize,
}

/// A checkpoint that is on disk.
#[derive(Debug)]
pub(super) struct WrittenCheckpoint {
    pub(super) path: PathBuf,
    pub(super) n_epochs: usize,
    pub(super) n_steps: usize,
}

impl DueCheckpoint {
    /// Writes it with `save`, submits it to be copied, then removes the checkpoints that it replaces.
    pub(super) fn write(self, save: impl FnOnce(&Checkpoint, &Path) -> Result<(), Error>) -> Result<WrittenCheckpoint, Error> {
        let Self { checkpoint, path, replaced, copies, n_epochs, n_steps } = self;
        save(&checkpoint, &path)?;
        if let Some(copies) = copies {
            copies.add(&path, &replaced);
        }
        replaced.iter().try_for_each(|replaced| remove(replaced))?;
        Ok(WrittenCheckpoint { path, n_epochs, n_steps })
    }
}

/// Writes checkpoints in the order in which they are submitted, each completely before the next. After one that cannot be
/// written, those that were submitted by then are not written either. Dropping the writer waits for all of them.
#[derive(Debug, Default)]
pub(super) struct CheckpointWriter {
    /// Started with the first checkpoint.
    thread: Option<WriterThread>,
}

type WriteResult = Result<WrittenCheckpoint, Error>;

#[derive(Debug)]
struct WriterThread {
    due: Sender<DueCheckpoint>,
    results: Receiver<WriteResult>,
    n_pending: usize,
    handle: JoinHandle<()>,
}

impl CheckpointWriter {
    /// Hands a checkpoint to the thread.
    pub(super) fn write(&mut self, due: DueCheckpoint) -> Result<(), Error> {
        let thread = match self.thread.take() {
            Some(thread) => thread,
            None => WriterThread::start().map_err(Error::io(&due.path, "start a thread that writes it"))?,
        };
        let thread = self.thread.insert(thread);
        thread.n_pending += 1;
        // After a failure the thread accepts no more; the failure is then among its results.
        let _ = thread.due.send(due);
        Ok(())
    }

    /// A checkpoint that has been written; each is returned once.
    pub(super) fn written(&mut self) -> Result<Option<WrittenCheckpoint>, Error> {
        self.next(Receiver::try_recv)
    }

    /// The same, waiting for a checkpoint that is still being written; `None` once all are.
    pub(super) fn wait(&mut self) -> Result<Option<WrittenCheckpoint>, Error> {
        self.next(|results| results.recv().map_err(|_| TryRecvError::Disconnected))
    }

    fn next(
        &mut self,
        receive: impl FnOnce(&Receiver<WriteResult>) -> Result<WriteResult, TryRecvError>,
    ) -> Result<Option<WrittenCheckpoint>, Error> {
        let Some(thread) = self.thread.as_mut().filter(|thread| thread.n_pending > 0) else { return Ok(None) };
        match receive(&thread.results) {
            Err(TryRecvError::Empty) => Ok(None),
            Ok(Ok(written)) => {
                thread.n_pending -= 1;
                Ok(Some(written))
            }
            // The thread has ended, without a result if it has panicked.
            last => {
                if let Some(Err(panic)) = self.thread.take().map(WriterThread::join) {
                    resume_unwind(panic);
                }
                last.ok().transpose()
            }
        }
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        // If there are results left, the run has ended with an error or a panic.
        drop(self.thread.take().map(WriterThread::join));
    }
}

impl WriterThread {
    fn start() -> std::io::Result<Self> {
        let (due, to_write) = mpsc::channel::<DueCheckpoint>();
        let (sender, results) = mpsc::channel();
        let handle = thread::Builder::new().name("brisk-checkpoints".to_owned()).spawn(move || {
            for due in to_write {
                let result = due.write(|checkpoint, path| DataParallel::single().save(checkpoint, path, 0).map(drop));
                let has_failed = result.is_err();
                // The receiver is gone if the run has ended with an error.
                let _ = sender.send(result);
                if has_failed {
                    break;
                }
            }
        })?;
        Ok(Self { due, results, n_pending: 0, handle })
    }

    /// Waits until all submitted checkpoints have been written.
    fn join(self) -> thread::Result<()> {
        drop(self.due);
        self.handle.join()
    }
}

/// Removes the files of a checkpoint. One that no longer exists, as when a resumed run repeats this, is not an error.
fn remove(path: &Path) -> Result<(), Error> {
    let parts = files_of(path).into_iter().map(|(_, file)| file);
    for file in parts.chain([Index::path_of(path), path.to_owned()]).filter(|file| file.exists()) {
        fs::remove_file(&file).map_err(Error::io(&file, "remove an older checkpoint"))?;
    }
    Ok(())
}
