//! The run in a store, copied to a folder.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_atomic_file::write_atomically;

use super::RunFolder;
use super::checkpoints::position;
use crate::checkpoint::Checkpoint;
use crate::checkpoint::head::Head;
use crate::checkpoint::index::Index;
use crate::checkpoint::source::Source;
use crate::checkpoint_store::{CheckpointStore, object_of, read_copy};
use crate::error::Error;

/// The result of [`RunFolder::fetch`] and [`RunFolder::fetch_but_parts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetched {
    /// The folder now has the checkpoints of the store.
    Newer,
    /// The folder now has all but the newest checkpoint of the store, the object of this name, which consists of several files.
    ButParts(String),
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
        self.fetch_from(store, fetch_checkpoint)
    }

    /// The same without the [files of replicas](crate::CheckpointFiles::OneAReplica): if the newest checkpoint consists of
    /// several, it stays in the store, from which each replica loads what it needs by
    /// [`Training::load_checkpoint_from`](crate::Training::load_checkpoint_from).
    ///
    /// # Errors
    /// Those of [`fetch`](Self::fetch).
    pub fn fetch_but_parts(&self, store: &dyn CheckpointStore) -> Result<Fetched, Error> {
        self.fetch_from(store, |store, path| match fetch_file(store, path)? {
            true => Ok(Arrived::Files(vec![path.to_owned()])),
            false => Ok(position_of_parts(store, path)?.map_or(Arrived::default(), Arrived::Parts)),
        })
    }

    fn fetch_from(
        &self,
        store: &dyn CheckpointStore,
        fetch_checkpoint: impl Fn(&dyn CheckpointStore, &Path) -> Result<Arrived, Error>,
    ) -> Result<Fetched, Error> {
        let arrival = Arrival::create(self.path().join(ARRIVAL))?;
        let arrived = Self::at(arrival.path.clone());
        let (mut checkpoints, mut parts) = (Vec::new(), None);
        for path in [arrived.best(), arrived.last()] {
            match fetch_checkpoint(store, &path)? {
                Arrived::Files(files) => checkpoints.extend(files),
                Arrived::Parts(at) => parts = parts.max(Some((at, object_of(&path)))),
            }
        }
        // After the checkpoints: it then has all rows that they count.
        let mut files = Vec::new();
        for path in arrived.companions() {
            files.extend(fetch_file(store, &path)?.then_some(path));
        }
        let found = arrived.find_checkpoint()?;
        let whole = found.newest.map(|(_, whole)| position(&whole)).transpose()?;
        let parts = parts.filter(|(at, _)| whole.is_none_or(|whole| whole < *at));
        let Some(theirs) = parts.as_ref().map(|(at, _)| *at).or(whole) else {
            return found.damaged.into_iter().next().map_or(Ok(Fetched::Nothing), Err);
        };
        let ours = self.find_checkpoint()?.newest.map(|(_, ours)| position(&ours)).transpose()?;
        if ours.is_some_and(|ours| ours >= theirs) {
            return Ok(Fetched::NotNewer);
        }
        self.set_aside()?;
        // An index is the last file of its checkpoint.
        for from in files.into_iter().chain(checkpoints) {
            let to = self.path().join(from.file_name().unwrap_or_default());
            fs::rename(&from, &to).map_err(Error::io(&to, "write what was fetched"))?;
        }
        Ok(parts.map_or(Fetched::Newer, |(_, object)| Fetched::ButParts(object)))
    }
}

/// What has arrived of a checkpoint.
enum Arrived {
    /// Its files, the index last; none if the store does not have it.
    Files(Vec<PathBuf>),
    /// Its position in the run, as it consists of several files, which stay in the store.
    Parts((usize, usize)),
}

impl Default for Arrived {
    fn default() -> Self {
        Self::Files(Vec::new())
    }
}

/// The position of a checkpoint of several files, which is in the head of one of them; `None` if the store does not have it.
fn position_of_parts(store: &dyn CheckpointStore, path: &Path) -> Result<Option<(usize, usize)>, Error> {
    let source = Source::Store(store);
    let Some(index) = read_index(store, path)?.map(|(_, index)| index) else { return Ok(None) };
    let mut strings = Checkpoint::default();
    for file in index.files() {
        let path = path.with_file_name(file);
        let read =
            source.read_head(&path).map_err(|cause| Error::Io { path: path.clone(), action: "read the checkpoint", cause });
        let head = read.and_then(|(n_bytes, bytes)| Head::parse(&bytes, n_bytes, &path)).map_err(|error| source.named(error))?;
        head.strings().for_each(|(key, value)| strings.insert_metadata(key, value));
    }
    position(&strings).map(Some)
}

/// The index of a checkpoint of several files, and its bytes.
fn read_index(store: &dyn CheckpointStore, path: &Path) -> Result<Option<(Vec<u8>, Index)>, Error> {
    let path = Index::path_of(path);
    let Some(bytes) = read_copy(store, &path)? else { return Ok(None) };
    let index = Index::parse(&bytes, Path::new(&store.name_of(&object_of(&path))))?;
    Ok(Some((bytes, index)))
}

/// Copies the files of a checkpoint to the folder of `path`, `NAME.safetensors`.
fn fetch_checkpoint(store: &dyn CheckpointStore, path: &Path) -> Result<Arrived, Error> {
    if fetch_file(store, path)? {
        return Ok(Arrived::Files(vec![path.to_owned()]));
    }
    let index_path = Index::path_of(path);
    for _ in 0..ATTEMPTS {
        let Some((bytes, index)) = read_index(store, path)? else { return Ok(Arrived::default()) };
        let files: Vec<PathBuf> = index.files().into_iter().map(|file| path.with_file_name(file)).collect();
        let mut has_all = true;
        for file in &files {
            // It is replaced by a newer one, which has removed it.
            has_all = has_all && fetch_file(store, file)?;
        }
        if has_all {
            write(&index_path, &bytes)?;
            return Ok(Arrived::Files(files.into_iter().chain([index_path]).collect()));
        }
    }
    let path = PathBuf::from(store.name_of(&object_of(&index_path)));
    Err(Error::damaged(path, None, "some of the files that it lists are missing"))
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
