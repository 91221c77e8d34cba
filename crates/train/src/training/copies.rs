//! The copies of a run's checkpoints in a store, made by a thread while training continues.
//!
//! A checkpoint is sent after the log and the settings that a run which resumes from it needs. If a newer one of the same name is
//! due before an older one was sent, only the newer one is sent. What failed is due again with the next checkpoint.
//!
//! A checkpoint is due once it is on disk: the thread of `checkpoint_writer` wrote it or, with replicas, each of them or the
//! first did (`data_parallel::files`). `joint_copies` sends the files of several replicas, then their index. For a URL, the
//! store is `brisk-table`'s `RemoteFolder`. `RunFolder::fetch` reads a run back; of a checkpoint of several files, each replica
//! reads only what it needs from the store (`checkpoint::source`).

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use crate::checkpoint::index::Index;
use crate::checkpoint_store::{CheckpointStore, StoreError, object_of, read_copy};
use crate::run_folder::RunFolder;

/// An object that could not be written or removed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) object: String,
    pub(super) reason: String,
}

/// What is to be done, in this order. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct CopyQueue(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    due: VecDeque<Task>,
    failed: Vec<(Task, Failure)>,
    /// The objects of which a failure has been told, until the store works again.
    told: HashSet<String>,
    is_busy: bool,
    /// Whether there will be no more tasks.
    is_closed: bool,
    /// Whether the thread has ended.
    has_ended: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    Put(PathBuf),
    Delete(PathBuf),
}

/// The thread, and what it is to do. Dropping this waits until all of it is done or has failed.
#[derive(Debug)]
pub(super) struct Copies {
    pub(super) queue: CopyQueue,
    thread: Option<JoinHandle<()>>,
}

impl Copies {
    /// Starts the thread, which copies what is in `folder` to the store.
    pub(super) fn start(store: Arc<dyn CheckpointStore>, folder: &RunFolder) -> std::io::Result<Self> {
        let queue = CopyQueue(Arc::default());
        let (shared, mut companions) = (queue.0.clone(), Companions::of(folder));
        let thread = thread::Builder::new().name("brisk-copies".to_owned()).spawn(move || {
            let _end = EndOfThread(&shared);
            while let Some(task) = shared.next() {
                let result = task.carry_out(&*store, &mut companions);
                shared.finish(task, result);
            }
        })?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// What has failed and was not reported before. An object is reported again once it has been copied in between.
    pub(super) fn new_failures(&self) -> Vec<Failure> {
        let mut state = self.queue.0.lock();
        let State { failed, told, .. } = &mut *state;
        let failures = failed.iter().map(|(_, failure)| failure);
        failures.filter(|failure| told.insert(failure.object.clone())).cloned().collect()
    }

    /// Waits until everything is done or has failed, and returns what has.
    pub(super) fn wait(&mut self) -> Vec<Failure> {
        let mut state = self.queue.0.lock();
        while (state.is_busy || !state.due.is_empty()) && !state.has_ended {
            state = self.queue.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.has_ended
            && let Some(Err(panic)) = self.thread.take().map(JoinHandle::join)
        {
            resume_unwind(panic);
        }
        state.failed.iter().map(|(_, failure)| failure.clone()).collect()
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        self.queue.0.lock().is_closed = true;
        self.queue.0.changed.notify_all();
        drop(self.thread.take().map(JoinHandle::join));
    }
}

/// Says that the thread has ended, also if the store panics.
struct EndOfThread<'s>(&'s Shared);

impl Drop for EndOfThread<'_> {
    fn drop(&mut self) {
        self.0.lock().has_ended = true;
        self.0.changed.notify_all();
    }
}

impl CopyQueue {
    /// Adds a checkpoint that is on disk, and those that it replaces, which still are. What failed before is tried first.
    pub(super) fn add(&self, checkpoint: &Path, replaced: &[PathBuf]) {
        let mut state = self.0.lock();
        let again = std::mem::take(&mut state.failed).into_iter().map(|(task, _)| task);
        let new = [Task::Put(checkpoint.to_owned())].into_iter().chain(replaced.iter().cloned().map(Task::Delete));
        let all: Vec<Task> = again.chain(std::mem::take(&mut state.due)).chain(new).collect();
        // Of the tasks for one file, the last counts.
        let is_last = |(at, task): &(usize, &Task)| all[at + 1..].iter().all(|later| later.path() != task.path());
        state.due = all.iter().enumerate().filter(is_last).map(|(_, task)| task.clone()).collect();
        drop(state);
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a task; `None` once there will be no more.
    fn next(&self) -> Option<Task> {
        let mut state = self.lock();
        loop {
            if let Some(task) = state.due.pop_front() {
                state.is_busy = true;
                return Some(task);
            }
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn finish(&self, task: Task, result: Result<(), Failure>) {
        let mut state = self.lock();
        state.is_busy = false;
        let is_superseded = state.due.iter().any(|later| later.path() == task.path());
        let State { failed, told, .. } = &mut *state;
        failed.retain(|(other, _)| other.path() != task.path());
        match result {
            Ok(()) => told.retain(|object| failed.iter().any(|(_, failure)| failure.object == *object)),
            // The file may have been removed since; another task then removes its copy.
            Err(_) if is_superseded && !task.path().exists() => {}
            Err(failure) => failed.push((task, failure)),
        }
        drop(state);
        self.changed.notify_all();
    }
}

impl Task {
    fn path(&self) -> &Path {
        match self {
            Self::Put(path) | Self::Delete(path) => path,
        }
    }

    fn carry_out(&self, store: &dyn CheckpointStore, companions: &mut Companions) -> Result<(), Failure> {
        let object = object_of(self.path());
        let failed = |cause: StoreError| Failure { object: store.name_of(&object), reason: cause.to_string() };
        match self {
            Self::Put(path) => {
                companions.put(store)?;
                store.put(path, &object).map_err(failed)?;
            }
            Self::Delete(_) => store.delete(&object).map_err(failed)?,
        }
        // What cannot be removed only takes space.
        drop(delete_parts(store, self.path()));
        Ok(())
    }
}

/// Removes the files of several that an earlier run has left of this checkpoint, and their index last, by which they are found.
fn delete_parts(store: &dyn CheckpointStore, path: &Path) -> Result<(), StoreError> {
    let index = Index::path_of(path);
    let Some(bytes) = read_copy(store, &index)? else { return Ok(()) };
    let found = Index::parse(&bytes, &index);
    found.iter().flat_map(Index::files).try_for_each(|file| store.delete(file))?;
    store.delete(&object_of(&index))
}

/// The files that a run needs, besides a checkpoint, to resume: its settings and its log. They are sent before a checkpoint, so
/// that the log has its rows.
#[derive(Debug)]
pub(super) struct Companions {
    paths: [PathBuf; 3],
    /// Length and time of each when it was sent.
    sent: HashMap<PathBuf, (u64, SystemTime)>,
}

impl Companions {
    pub(super) fn of(folder: &RunFolder) -> Self {
        Self { paths: folder.companions(), sent: HashMap::new() }
    }

    /// Sends those that have changed.
    pub(super) fn put(&mut self, store: &dyn CheckpointStore) -> Result<(), Failure> {
        for path in &self.paths {
            let Ok(metadata) = fs::metadata(path) else { continue };
            let now = (metadata.len(), metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH));
            if self.sent.get(path) == Some(&now) {
                continue;
            }
            let object = object_of(path);
            let sent = store.put(path, &object);
            sent.map_err(|cause| Failure { object: store.name_of(&object), reason: cause.to_string() })?;
            self.sent.insert(path.clone(), now);
        }
        Ok(())
    }
}
