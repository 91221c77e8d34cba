//! The run in a store, copied to a folder.

use std::fs;
use std::path::{Path, PathBuf};

use brisk_atomic_file::write_atomically;

use super::RunFolder;
use super::checkpoints::position;
use crate::checkpoint::index::Index;
use crate::checkpoint_store::{CheckpointStore, object_of, read_copy};
use crate::error::Error;

/// The result of [`RunFolder::fetch`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// The folder now has the checkpoints of the store.
    Newer,
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
        let arrival = Arrival::create(self.path().join(ARRIVAL))?;
        let arrived = Self::at(arrival.path.clone());
        let mut checkpoints = Vec::new();
        for path in [arrived.best(), arrived.last()] {
            checkpoints.extend(fetch_checkpoint(store, &path)?);
        }
        // After the checkpoints: it then has all rows that they count.
        let mut files = Vec::new();
        for path in arrived.companions() {
            files.extend(fetch_file(store, &path)?.then_some(path));
        }
        let found = arrived.find_checkpoint()?;
        let Some((_, theirs)) = &found.newest else {
            return found.damaged.into_iter().next().map_or(Ok(Fetched::Nothing), Err);
        };
        let ours = self.find_checkpoint()?.newest;
        if let Some((_, ours)) = &ours
            && position(ours)? >= position(theirs)?
        {
            return Ok(Fetched::NotNewer);
        }
        self.set_aside()?;
        // An index is the last file of its checkpoint.
        for from in files.into_iter().chain(checkpoints) {
            let to = self.path().join(from.file_name().unwrap_or_default());
            fs::rename(&from, &to).map_err(Error::io(&to, "write what was fetched"))?;
        }
        Ok(Fetched::Newer)
    }
}

/// Copies the files of a checkpoint to the folder of `path`, `NAME.safetensors`, and returns them, the index last; none if the
/// store does not have it.
fn fetch_checkpoint(store: &dyn CheckpointStore, path: &Path) -> Result<Vec<PathBuf>, Error> {
    if fetch_file(store, path)? {
        return Ok(vec![path.to_owned()]);
    }
    let index_path = Index::path_of(path);
    for _ in 0..ATTEMPTS {
        let Some(bytes) = read_copy(store, &index_path)? else { return Ok(Vec::new()) };
        let index = Index::parse(&bytes, Path::new(&store.name_of(&object_of(&index_path))))?;
        let files: Vec<PathBuf> = index.files().into_iter().map(|file| path.with_file_name(file)).collect();
        let mut has_all = true;
        for file in &files {
            // It is replaced by a newer one, which has removed it.
            has_all = has_all && fetch_file(store, file)?;
        }
        if has_all {
            write(&index_path, &bytes)?;
            return Ok(files.into_iter().chain([index_path]).collect());
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
