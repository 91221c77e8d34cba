//! Names in a folder of shards, and which of them are rubbish.
//!
//! A writer is one *generation*, a number drawn at random. While it lives it holds a lock on the temporary file that is to become
//! the index; a process that is killed loses its locks. So what a dead writer left behind can be told from what a living one is making.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::format::ShardIndex;

/// The index of a folder of shards.
pub(super) const INDEX: &str = "table.safetensors.index.json";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Generation(u64);

impl Generation {
    pub(super) fn shard_name(self, shard: usize) -> String {
        format!("table-{:016x}-{shard:05}.safetensors", self.0)
    }

    fn temp_index_name(self) -> String {
        format!(".{INDEX}.{:016x}.tmp", self.0)
    }

    /// The generation that a file belongs to: a shard, one that is being written, or an index that is.
    fn of(file_name: &str) -> Option<Self> {
        let number = file_name
            .strip_prefix("table-")
            .or_else(|| file_name.strip_prefix(".table-"))
            .filter(|rest| rest.get(16..17) == Some("-") && rest.contains(".safetensors"))
            .or_else(|| file_name.strip_prefix(&format!(".{INDEX}.")).filter(|rest| rest.get(16..) == Some(".tmp")))?;
        u64::from_str_radix(number.get(..16)?, 16).ok().map(Self)
    }
}

/// The index that a writer will publish, as long as it is a temporary file. Dropped before, it goes away, and its shards with it.
#[derive(Debug)]
pub(super) struct IndexToBe {
    folder: PathBuf,
    generation: Generation,
    n_shards: usize,
    /// Locked until it is closed.
    file: File,
    is_published: bool,
}

impl IndexToBe {
    /// Draws a generation that no file of the folder belongs to.
    pub(super) fn create(folder: &Path) -> io::Result<Self> {
        loop {
            let generation = Generation(RandomState::new().hash_one(std::process::id()));
            let path = folder.join(generation.temp_index_name());
            let file = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                file => file?,
            };
            match file.lock() {
                // Without locks nobody is known to be dead, and nothing is swept.
                Err(error) if error.kind() != io::ErrorKind::Unsupported => {
                    _ = fs::remove_file(&path);
                    return Err(error);
                }
                _ => {}
            }
            // Between its creation and the lock, somebody who sweeps may have taken it for a dead writer's.
            if path.try_exists()? {
                return Ok(Self { folder: folder.to_owned(), generation, n_shards: 0, file, is_published: false });
            }
        }
    }

    /// The path of the next shard, which from now on belongs to this index.
    pub(super) fn next_shard(&mut self) -> PathBuf {
        let name = self.generation.shard_name(self.n_shards);
        self.n_shards += 1;
        self.folder.join(name)
    }

    /// Where the index will be.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.join(INDEX)
    }

    /// Puts the index in its place, for good, and removes what it replaces.
    pub(super) fn publish(mut self, index: &ShardIndex) -> io::Result<()> {
        io::Write::write_all(&mut self.file, index.encode().as_bytes())?;
        self.file.sync_all()?;
        fs::rename(self.folder.join(self.generation.temp_index_name()), self.folder.join(INDEX))?;
        self.is_published = true;
        if cfg!(unix) {
            File::open(&self.folder)?.sync_all()?;
        }
        sweep(&self.folder);
        Ok(())
    }
}

impl Drop for IndexToBe {
    fn drop(&mut self) {
        if self.is_published {
            return;
        }
        // There is nobody to tell: the error that led here is the one that counts.
        for shard in 0..self.n_shards {
            _ = fs::remove_file(self.folder.join(self.generation.shard_name(shard)));
        }
        _ = fs::remove_file(self.folder.join(self.generation.temp_index_name()));
    }
}

/// Removes the files of generations that are neither the folder's nor a living writer's.
///
/// The order makes this safe beside other writers that begin or publish meanwhile: first which files there are, then whose writers are
/// dead, and the index last. A writer that published since is then the index's. Whatever cannot be read or removed is left for the next.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut generations: BTreeMap<Generation, Vec<String>> = BTreeMap::new();
    for name in entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()) {
        if let Some(generation) = Generation::of(&name) {
            generations.entry(generation).or_default().push(name);
        }
    }
    let dead: Vec<_> = generations.into_iter().filter_map(|(g, names)| Some((Dead::found(folder, g)?, names))).collect();

    let index = fs::read(folder.join(INDEX)).ok().and_then(|json| ShardIndex::parse(&json).ok());
    let Some(index) = index else { return };
    for (_until_removed, names) in dead {
        for name in names.iter().filter(|name| index.shards.iter().all(|shard| shard.file_name != **name)) {
            _ = fs::remove_file(folder.join(name));
        }
    }
}

/// A generation whose writer has gone: published, dropped or killed.
struct Dead {
    /// The lock on its temporary index, if that is there: a writer that is about to take it waits, and then finds its file gone.
    _lock: Option<File>,
}

impl Dead {
    fn found(folder: &Path, generation: Generation) -> Option<Self> {
        match OpenOptions::new().write(true).open(folder.join(generation.temp_index_name())) {
            Ok(file) => file.try_lock().ok().map(|()| Self { _lock: Some(file) }),
            Err(error) => (error.kind() == io::ErrorKind::NotFound).then_some(Self { _lock: None }),
        }
    }
}

/// The index that a path stands for: itself, or that of the folder.
pub(super) fn index_path(path: &Path) -> PathBuf {
    if path.extension() == Some(OsStr::new("json")) && !path.is_dir() { path.to_owned() } else { path.join(INDEX) }
}
