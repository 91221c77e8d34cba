//! The contents of a folder, and whether they are complete.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;

/// Everything below a folder, with a hash of each file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Snapshot(BTreeMap<PathBuf, Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Entry {
    Folder,
    File {
        n_bytes: u64,
        hash: u64,
    },
    Link(PathBuf),
    /// A device, a pipe or a socket.
    Special,
}

impl Snapshot {
    pub(crate) fn take(dir: &Path) -> Self {
        let mut entries = BTreeMap::new();
        add(dir, dir, &mut entries);
        Self(entries)
    }

    /// The differences of `later`, one text for each path.
    pub(crate) fn changes(&self, later: &Self) -> Vec<String> {
        let gone = self.0.iter().filter_map(|(path, before)| match later.0.get(path) {
            None => Some(format!("{} is gone", path.display())),
            Some(after) if after != before => Some(format!("{} has changed", path.display())),
            Some(_) => None,
        });
        let new = later.0.keys().filter(|path| !self.0.contains_key(*path)).map(|path| format!("{} is new", path.display()));
        gone.chain(new).collect()
    }
}

fn add(root: &Path, dir: &Path, entries: &mut BTreeMap<PathBuf, Entry>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        let found = if kind.is_dir() {
            add(root, &path, entries);
            Entry::Folder
        } else if kind.is_file() {
            let bytes = fs::read(&path).unwrap_or_default();
            let mut hasher = DefaultHasher::new();
            bytes.hash(&mut hasher);
            Entry::File { n_bytes: bytes.len() as u64, hash: hasher.finish() }
        } else if kind.is_symlink() {
            Entry::Link(fs::read_link(&path).unwrap_or_default())
        } else {
            Entry::Special
        };
        entries.insert(path.strip_prefix(root).unwrap_or(&path).to_owned(), found);
    }
}

/// The paths of hidden and temporary files below a folder.
pub(crate) fn leftovers(dir: &Path) -> Vec<String> {
    Snapshot::take(dir).0.keys().filter(|path| is_leftover(path)).map(|path| path.display().to_string()).collect()
}

fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with('.') || name.contains("tmp")
}

/// Files below a folder that are not complete: safetensors files and JSON that cannot be parsed, except temporary files.
pub(crate) fn damaged(dir: &Path) -> Vec<String> {
    let left = leftovers(dir);
    let files = Snapshot::take(dir).0.into_keys().filter(|path| !left.contains(&path.display().to_string()));
    files.filter_map(|path| whole(&dir.join(&path)).err().map(|why| format!("{}: {why}", path.display()))).collect()
}

/// Whether a file is complete, if its extension says what it is.
fn whole(path: &Path) -> Result<(), String> {
    let bytes = || fs::read(path).map_err(|error| error.to_string());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !path.is_file() {
        Ok(())
    } else if name.ends_with(".safetensors") {
        SafeTensors::deserialize(&bytes()?).map(drop).map_err(|error| error.to_string())
    } else if name == "metrics.json" {
        // One JSON object per line; the last line may be cut off.
        let text = String::from_utf8(bytes()?).map_err(|error| error.to_string())?;
        let mut lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        lines.try_for_each(|line| serde_json::from_str::<serde_json::Value>(line).map(drop)).map_err(|error| error.to_string())
    } else if name.ends_with(".json") {
        serde_json::from_slice::<serde_json::Value>(&bytes()?).map(drop).map_err(|error| error.to_string())
    } else {
        Ok(())
    }
}
