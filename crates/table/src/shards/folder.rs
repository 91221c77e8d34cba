//! Names in a folder of shards, and which files are left over.
//!
//! The files of one writer are a *generation*, named by a random number. While the writer is running, it holds the temporary file
//! that will become the index, as [`create_claimed`] describes, so that sweeps can tell the files of a killed process from those
//! of a running one.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use brisk_atomic_file::{Leftover, PublishError, create_claimed, read_regular_file, replace, sync_folder};

#[cfg(feature = "remote")]
use crate::error::Error;
use crate::format::ShardIndex;

/// The index of a folder of shards.
pub(crate) const INDEX: &str = "table.safetensors.index.json";

/// The file with the number of a staging folder.
#[cfg(feature = "remote")]
const STAGING_NUMBER: &str = ".staging-number";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(u64);

impl Generation {
    pub(super) fn shard_name(self, shard: usize) -> String {
        format!("table-{:016x}-{shard:05}.safetensors", self.0)
    }

    /// A new one, of a writer whose files are in the staging folder with this number.
    #[cfg(feature = "remote")]
    fn staged(staging: u32) -> Self {
        Self(u64::from(staging) << 32 | Self::new().0 & u64::from(u32::MAX))
    }

    fn new() -> Self {
        Self(RandomState::new().hash_one(()))
    }

    /// The number of the staging folder, if it is of a writer that has one.
    #[cfg(feature = "remote")]
    fn staging(self) -> u32 {
        (self.0 >> 32) as u32
    }

    fn temp_index_name(self) -> String {
        format!(".{INDEX}.{:016x}.tmp", self.0)
    }

    /// The generation that a file belongs to: a shard, or the temporary file of a shard or index.
    pub(super) fn of(file_name: &str) -> Option<Self> {
        let number = file_name
            .strip_prefix("table-")
            .or_else(|| file_name.strip_prefix(".table-"))
            .filter(|rest| rest.get(16..17) == Some("-") && rest.contains(".safetensors"))
            .or_else(|| file_name.strip_prefix(&format!(".{INDEX}.")).filter(|rest| rest.get(16..) == Some(".tmp")))?;
        u64::from_str_radix(number.get(..16)?, 16).ok().map(Self)
    }
}

/// The temporary file of the index that a writer will publish. If it is dropped unpublished, it is removed with its shards.
#[derive(Debug)]
pub(crate) struct IndexToBe {
    folder: PathBuf,
    generation: Generation,
    n_shards: usize,
    /// Marks the generation as that of a running writer until it is closed.
    file: File,
    is_published: bool,
}

impl IndexToBe {
    /// Starts a new generation, and removes what killed writers left in the folder.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        Self::with(folder, Generation::new)
    }

    /// The same in a folder for files in transit.
    #[cfg(feature = "remote")]
    pub(crate) fn create_staging(folder: &Path) -> Result<Self, Error> {
        let number = staging_number(folder);
        Self::with(folder, || Generation::staged(number)).map_err(Error::write(folder))
    }

    fn with(folder: &Path, draw: impl Fn() -> Generation) -> io::Result<Self> {
        sweep(folder, Generations::OfKilledWriters);
        loop {
            let generation = draw();
            if let Some(file) = create_claimed(&folder.join(generation.temp_index_name()))? {
                return Ok(Self { folder: folder.to_owned(), generation, n_shards: 0, file, is_published: false });
            }
        }
    }

    /// The path of the next shard, which belongs to this index from now on.
    pub(crate) fn next_shard(&mut self) -> PathBuf {
        let name = self.generation.shard_name(self.n_shards);
        self.n_shards += 1;
        self.folder.join(name)
    }

    /// Whether a generation, of which files were sent, is that of a writer that used the same staging folder, and still runs if
    /// so; `None` if it used another folder.
    #[cfg(feature = "remote")]
    pub(super) fn is_running(&self, generation: Generation) -> Option<bool> {
        // The sweep has removed those of killed writers.
        let is_there = || self.folder.join(generation.temp_index_name()).try_exists().unwrap_or(true);
        (generation.staging() == self.generation.staging()).then(is_there)
    }

    /// Where the index will be.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(INDEX)
    }

    /// Makes the index durable, puts it in its place, and removes the shards that it replaces.
    pub(super) fn publish(mut self, index: &ShardIndex) -> io::Result<()> {
        io::Write::write_all(&mut self.file, index.encode().as_bytes())?;
        self.file.sync_all()?;
        match replace(&self.folder.join(self.generation.temp_index_name()), &self.path()) {
            Err(PublishError::Kept { kept, cause, .. }) => {
                // The index is of no use without its shards, which are removed when this value is dropped.
                _ = fs::remove_file(kept);
                return Err(cause);
            }
            replaced => replaced?,
        }
        self.is_published = true;
        sync_folder(&self.path())?;
        sweep(&self.folder, Generations::NotInIndex);
        Ok(())
    }
}

impl Drop for IndexToBe {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        // Files that cannot be removed here are removed by the next writer in the folder.
        for shard in 0..self.n_shards {
            remove(&self.folder.join(self.generation.shard_name(shard)));
        }
        _ = fs::remove_file(self.folder.join(self.generation.temp_index_name()));
    }
}

/// Which generations a sweep removes; never that of a running writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generations {
    /// Those with a temporary index: their writers were killed before they could publish it.
    OfKilledWriters,
    /// All except that of the published index. This includes those of the old table.
    NotInIndex,
}

/// Removes the files of some generations.
///
/// The order makes this safe while other writers begin or publish: the files are listed first, then the writers that are gone are
/// determined, and the index is read last. The index of a writer that published in between is then the published one. Files that
/// cannot be read or removed are left for the next sweep.
fn sweep(folder: &Path, which: Generations) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut generations: BTreeMap<Generation, Vec<String>> = BTreeMap::new();
    for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        if let Some(generation) = Generation::of(&name) {
            generations.entry(generation).or_default().push(name);
        }
    }
    let dead: Vec<_> =
        generations.into_iter().filter_map(|(generation, names)| Some((Dead::find(folder, generation, which)?, names))).collect();

    let published = read_regular_file(&folder.join(INDEX)).ok().and_then(|json| ShardIndex::parse(&json).ok());
    let is_published =
        |name: &String| published.as_ref().is_some_and(|index| index.shards.iter().any(|shard| shard.file_name == *name));
    for (dead, names) in dead {
        // If the index cannot be read, only files that were never part of a table are removed.
        if published.is_none() && dead.temp_index.is_none() {
            continue;
        }
        let temp_index = dead.temp_index.as_ref().and_then(|leftover| leftover.path().file_name());
        let removed = names.iter().filter(|name| !is_published(name) && temp_index != Some(OsStr::new(name)));
        for name in removed {
            remove(&folder.join(name));
        }
    }
}

/// Removes a shard, or in a staging folder the folder of a copy, which has the name of one.
fn remove(path: &Path) {
    if fs::remove_file(path).is_err() {
        _ = fs::remove_dir_all(path);
    }
}

/// A generation whose writer is gone: it published, failed or was killed.
struct Dead {
    /// Its temporary index, if it has one, which means that it was never published. It is removed after the shards, so that an
    /// interrupted sweep is repeated.
    temp_index: Option<Leftover>,
}

impl Dead {
    fn find(folder: &Path, generation: Generation, which: Generations) -> Option<Self> {
        let path = folder.join(generation.temp_index_name());
        match Leftover::seize(&path) {
            Some(temp_index) => Some(Self { temp_index: Some(temp_index) }),
            None if which == Generations::OfKilledWriters => None,
            None => path.try_exists().is_ok_and(|is_there| !is_there).then_some(Self { temp_index: None }),
        }
    }
}

/// A number by which a staging folder is told apart from those of other machines: that of its file, which is written if there is
/// none.
#[cfg(feature = "remote")]
fn staging_number(folder: &Path) -> u32 {
    let path = folder.join(STAGING_NUMBER);
    let read = || u32::from_str_radix(fs::read_to_string(&path).ok()?.trim(), 16).ok();
    let new = Generation::new().staging();
    read().unwrap_or_else(|| {
        // Without the file, the folder has a new number each time, and what its killed writers have sent stays longer.
        _ = brisk_atomic_file::write_atomically(&path, |file| io::Write::write_all(file, format!("{new:08x}\n").as_bytes()));
        read().unwrap_or(new)
    })
}

/// The index that a path refers to: the path itself, or the index in that folder.
pub(super) fn index_path(path: &Path) -> PathBuf {
    if path.extension() == Some(OsStr::new("json")) && !path.is_dir() { path.to_owned() } else { path.join(INDEX) }
}
