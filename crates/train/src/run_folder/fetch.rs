//! The run in a store, copied to a folder.

use std::cmp::Reverse;
use std::fs;
use std::path::{Path, PathBuf};

use brisk_atomic_file::write_atomically;

use super::RunFolder;
use super::checkpoints::{is_unusable, position, position_in};
use crate::checkpoint::index::Index;
use crate::checkpoint::source::Source;
use crate::checkpoint_store::{CheckpointStore, object_of, read_copy};
use crate::error::Error;

/// The result of [`RunFolder::fetch`] and [`RunFolder::fetch_but_parts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The folder now has the checkpoints of the store.
    Newer,
    /// The folder now has all but these checkpoints of the store, which consist of several files: the names of the objects to
    /// [load](crate::Training::load_checkpoint_from), in this order, until one is intact. The newest is the first, after those
    /// whose heads cannot be read.
    ButParts(Vec<String>),
    /// The checkpoints in the folder are as new as those of the store, or newer. It is unchanged.
    NotNewer,
    /// There are no checkpoints in the store. The folder is unchanged.
    Nothing,
}

/// The subfolder in which files arrive.
const ARRIVAL: &str = "fetching";

/// How often a checkpoint is read whose files are replaced while it is read.
const ATTEMPTS: usize = 3;

impl RunFolder {
    /// Copies `last.safetensors` and `best.safetensors`, the log and `config.json` from a store to this folder, if their run got
    /// further than the one in it. Then [`find_checkpoint`](Self::find_checkpoint) finds them. What was in the folder before is
    /// [set aside](Self::set_aside).
    ///
    /// [`RunFolder::lock`] the folder first. With replicas, one of them calls this.
    ///
    /// # Errors
    /// [`Error::Store`] if the store cannot be read; [`Error::Damaged`], [`Error::WrongFile`] for a checkpoint in it that cannot
    /// be used, [`Error::Io`], [`Error::Write`]. The checkpoints in the folder are then unchanged.
    /// # Cost
    /// The memory of two checkpoints: all that is copied is checked.
    pub fn fetch(&self, store: &dyn CheckpointStore) -> Result<Fetched, Error> {
        let ours = self.find_checkpoint()?.newest.map(|(_, ours)| position(&ours)).transpose()?;
        self.fetch_from(store, ours, fetch_checkpoint)
    }

    /// The same without the [files of replicas](crate::CheckpointFiles::OneAReplica): checkpoints of several files stay in the
    /// store, from which each replica loads what it needs by
    /// [`Training::load_checkpoint_from`](crate::Training::load_checkpoint_from).
    ///
    /// # Errors
    /// Those of [`fetch`](Self::fetch).
    pub fn fetch_but_parts(&self, store: &dyn CheckpointStore) -> Result<Fetched, Error> {
        let ours = [self.last(), self.best()].iter().filter_map(|path| position_in(Source::Folder, path).ok().flatten()).max();
        self.fetch_from(store, ours, |store, path| match fetch_file(store, path)? {
            true => Ok(Arrived::Files(vec![path.to_owned()])),
            false => {
                let source = Source::Store(store);
                match position_in(source, path).map_err(|error| source.named(error)) {
                    Ok(at) => Ok(at.map_or(Arrived::default(), |at| Arrived::Parts(Ok(at)))),
                    Err(error) if is_unusable(&error) => Ok(Arrived::Parts(Err(error))),
                    Err(error) => Err(error),
                }
            }
        })
    }

    fn fetch_from(
        &self,
        store: &dyn CheckpointStore,
        ours: Option<(usize, usize)>,
        fetch_checkpoint: impl Fn(&dyn CheckpointStore, &Path) -> Result<Arrived, Error>,
    ) -> Result<Fetched, Error> {
        let arrival = Arrival::create(self.path().join(ARRIVAL))?;
        let arrived = Self::at(arrival.path.clone());
        let (mut checkpoints, mut parts, mut unusable) = (Vec::new(), Vec::new(), Vec::new());
        for path in [arrived.last(), arrived.best()] {
            match fetch_checkpoint(store, &path)? {
                Arrived::Files(files) => checkpoints.extend(files),
                Arrived::Parts(Ok(at)) => parts.push((Some(at), object_of(&path))),
                Arrived::Parts(Err(error)) => {
                    parts.push((None, object_of(&path)));
                    unusable.push(error);
                }
            }
        }
        // After the checkpoints: it then has all rows that they count.
        let mut files = Vec::new();
        for path in arrived.companions() {
            files.extend(fetch_file(store, &path)?.then_some(path));
        }
        let found = arrived.find_checkpoint()?;
        let whole = found.newest.map(|(_, whole)| position(&whole)).transpose()?;
        let newest_parts = parts.iter().filter_map(|(at, _)| *at).max();
        let Some(theirs) = newest_parts.max(whole) else {
            let damaged = found.damaged.into_iter().map(|error| Source::Store(store).named(error));
            return unusable.into_iter().chain(damaged).next().map_or(Ok(Fetched::Nothing), Err);
        };
        if ours.is_some_and(|ours| ours >= theirs) {
            return Ok(Fetched::NotNewer);
        }
        self.set_aside()?;
        // An index is the last file of its checkpoint.
        for from in files.into_iter().chain(checkpoints) {
            let to = self.path().join(from.file_name().unwrap_or_default());
            fs::rename(&from, &to).map_err(Error::io(&to, "write what was fetched"))?;
        }
        if newest_parts.is_none() || newest_parts < whole {
            return Ok(Fetched::Newer);
        }
        parts.sort_by_key(|(at, _)| at.map(Reverse));
        Ok(Fetched::ButParts(parts.into_iter().map(|(_, object)| object).collect()))
    }
}

/// What has arrived of a checkpoint.
enum Arrived {
    /// Its files, the index last; none if the store does not have it.
    Files(Vec<PathBuf>),
    /// Its position in the run, or why it cannot be read: it consists of several files, which stay in the store.
    Parts(Result<(usize, usize), Error>),
}

impl Default for Arrived {
    fn default() -> Self {
        Self::Files(Vec::new())
    }
}

/// Copies the files of a checkpoint to the folder of `path`, `NAME.safetensors`.
fn fetch_checkpoint(store: &dyn CheckpointStore, path: &Path) -> Result<Arrived, Error> {
    if fetch_file(store, path)? {
        return Ok(Arrived::Files(vec![path.to_owned()]));
    }
    let index_path = Index::path_of(path);
    let mut arrived = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some(bytes) = read_copy(store, &index_path)? else { return Ok(Arrived::default()) };
        write(&index_path, &bytes)?;
        // A damaged one is found later, like damaged files.
        let Ok(index) = Index::parse(&bytes, &index_path) else { break };
        let files: Vec<PathBuf> = index.files().into_iter().map(|file| path.with_file_name(file)).collect();
        let mut has_all = true;
        for file in files {
            // One that is missing has been replaced by a newer one; or is lost, which is found later.
            match fetch_file(store, &file)? {
                true => arrived.push(file),
                false => has_all = false,
            }
        }
        if has_all {
            break;
        }
    }
    arrived.sort();
    arrived.dedup();
    Ok(Arrived::Files(arrived.into_iter().chain([index_path]).collect()))
}

/// Whether the store has the file, which is then copied.
fn fetch_file(store: &dyn CheckpointStore, path: &Path) -> Result<bool, Error> {
    read_copy(store, path)?.map_or(Ok(false), |bytes| write(path, &bytes).map(|()| true))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    Ok(write_atomically(path, |file| std::io::Write::write_all(file, bytes))?)
}

/// A folder that is removed, with what is still in it.
struct Arrival {
    path: PathBuf,
}

impl Arrival {
    fn create(path: PathBuf) -> Result<Self, Error> {
        // Left by a process that was killed.
        drop(fs::remove_dir_all(&path));
        fs::create_dir(&path).map_err(Error::io(&path, "create the folder"))?;
        Ok(Self { path })
    }
}

impl Drop for Arrival {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.path));
    }
}
