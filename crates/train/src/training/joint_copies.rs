//! The copies of checkpoints of which each replica writes a file: each sends its own, then replica 0 sends the index.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::copies::{Companions, Failure};
use crate::checkpoint::index::Index;
use crate::checkpoint_store::{CheckpointStore, object_of, read_copy};
use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::run_folder::RunFolder;

/// A replica's side of it. Training waits while checkpoints are sent, as it does while they are written.
#[derive(Debug)]
pub(super) struct JointCopies {
    store: Arc<dyn CheckpointStore>,
    /// On replica 0.
    companions: Option<Companions>,
    /// On replica 0, the files in the store of each checkpoint that was sent, by the object of its index: those that the index
    /// there lists, and those of attempts that failed.
    known: BTreeMap<String, BTreeSet<String>>,
    /// The last failure for each object, until it is copied or is no longer needed.
    failed: BTreeMap<String, Failure>,
    /// On replica 0, checkpoints that were replaced and are still to be removed.
    obsolete: Vec<PathBuf>,
}

impl JointCopies {
    /// `folder` is the run's folder on replica 0, and `None` on others.
    pub(super) fn new(store: Arc<dyn CheckpointStore>, folder: Option<&RunFolder>) -> Self {
        Self {
            store,
            companions: folder.map(Companions::of),
            known: BTreeMap::new(),
            failed: BTreeMap::new(),
            obsolete: Vec::new(),
        }
    }

    /// On replica 0, the newest generation of the checkpoint `NAME.safetensors` in the store; 0 if there is none. New files get a
    /// greater one, so that they never replace files that an index in the store lists.
    pub(super) fn generation(&mut self, path: &Path) -> Result<u64, Error> {
        let index = Index::path_of(path);
        let name = object_of(&index);
        if self.companions.is_none() || self.known.contains_key(&name) {
            return Ok(0);
        }
        let found = read_copy(&*self.store, &index)?.map(|bytes| Index::parse(&bytes, Path::new(&self.store.name_of(&name))));
        let found = found.transpose()?;
        let files = found.iter().flat_map(|index| index.files());
        // A single file of that name would be mistaken for the latest.
        let files = files.map(str::to_owned).chain([object_of(path)]).collect();
        self.known.insert(name, files);
        Ok(found.map_or(0, |index| index.generation))
    }

    /// Sends this replica's file of a checkpoint, if it has one, and, once all have sent theirs, the index. `generation` is what
    /// [`generation`](Self::generation) returned. All replicas call it, and get the same failure if one fails.
    pub(super) fn send(
        &mut self,
        replicas: &DataParallel,
        generation: Result<u64, Error>,
        mine: Option<&Path>,
        path: &Path,
        replaced: &[PathBuf],
    ) -> Result<(), Error> {
        let index = Index::path_of(path);
        let name = self.store.name_of(&object_of(&index));
        let failure = |reason: String| Failure { object: name.clone(), reason };
        for replaced in replaced {
            self.failed.remove(&self.store.name_of(&object_of(&Index::path_of(replaced))));
            self.obsolete.push(replaced.clone());
        }
        // Without knowing which files there are, none is sent.
        let mut failed = replicas.first_problem(generation.err().map(|error| error.to_string()))?;
        if failed.is_none() {
            let sent = mine.map_or(Ok(()), |mine| self.store.put(mine, &object_of(mine)));
            failed = replicas.first_problem(sent.err().map(|error| error.to_string()))?;
            let published = match (&failed, self.companions.is_some()) {
                (None, true) => self.publish(&index),
                (Some(_), true) => self.remember(&index).map(drop).map_err(|error| error.to_string()),
                _ => Ok(()),
            };
            failed = failed.or(replicas.first_problem(published.err())?);
        }
        match failed {
            Some((_, reason)) => {
                self.failed.insert(name.clone(), failure(reason));
            }
            None => {
                self.failed.remove(&name);
                self.remove_old(&index);
            }
        }
        Ok(())
    }

    /// What has failed and is not copied yet.
    pub(super) fn failures(&self) -> Vec<Failure> {
        self.failed.values().cloned().collect()
    }

    fn publish(&mut self, index: &Path) -> Result<(), String> {
        self.remember(index).map_err(|error| error.to_string())?;
        if let Some(companions) = &mut self.companions {
            companions.put(&*self.store).map_err(|failure| failure.reason)?;
        }
        self.store.put(index, &object_of(index)).map_err(|error| error.to_string())
    }

    /// Adds the files of the index in the run's folder to those that are in the store.
    fn remember(&mut self, index: &Path) -> Result<Vec<String>, Error> {
        let files = files_of(index)?;
        self.known.entry(object_of(index)).or_default().extend(files.iter().cloned());
        Ok(files)
    }

    /// Removes the files of earlier checkpoints of this name, and those of checkpoints that were replaced. What cannot be removed
    /// only takes space, and is removed with the next one.
    fn remove_old(&mut self, index: &Path) {
        let store = self.store.clone();
        let Some(known) = self.known.get_mut(&object_of(index)) else { return };
        let files = files_of(index).unwrap_or_default();
        known.retain(|file| files.contains(file) || store.delete(file).is_err());
        for obsolete in std::mem::take(&mut self.obsolete) {
            // Finds its files.
            drop(self.generation(&obsolete));
            let index = object_of(&Index::path_of(&obsolete));
            let files = self.known.remove(&index).unwrap_or_default();
            [index].iter().chain(&files).for_each(|object| drop(store.delete(object)));
        }
    }
}

/// The files that an index of this machine lists.
fn files_of(index: &Path) -> Result<Vec<String>, Error> {
    let bytes = std::fs::read(index).map_err(Error::io(index, "read the index of a checkpoint"))?;
    Ok(Index::parse(&bytes, index)?.files().into_iter().map(str::to_owned).collect())
}
