//! The index of a checkpoint of several files: which tensor is in which file.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use brisk_atomic_file::{remove_leftovers, write_atomically};
use serde_json::{Value, json};

use super::checksum::{self, Content};
use super::format::{self, FORMAT_VERSION};
use crate::error::Error;

/// Reads a file, of a number. The outer error is that of replicas that cannot communicate.
pub(crate) type ReadFile<'f> = dyn FnMut(usize, &Path) -> Result<io::Result<Vec<u8>>, Error> + 'f;

/// `NAME.safetensors.index.json`, in the folder of the files that it lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index {
    /// Part of the files' names, one more for each checkpoint: those of the previous one stay until this index is in place.
    pub(crate) generation: u64,
    /// The file of each tensor.
    pub(crate) tensors: BTreeMap<String, String>,
    /// `None` for an index from before the format had versions.
    pub(super) format_version: Option<u32>,
}

const SUFFIX: &str = ".index.json";

impl Index {
    pub(crate) fn new(generation: u64, tensors: BTreeMap<String, String>) -> Self {
        Self { generation, tensors, format_version: Some(FORMAT_VERSION) }
    }

    /// The path of the index of the checkpoint `NAME.safetensors`; the path of an index is returned as it is.
    pub(crate) fn path_of(path: &Path) -> PathBuf {
        if is_index(path) {
            return path.to_owned();
        }
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(SUFFIX);
        path.with_file_name(name)
    }

    /// The name of a replica's file.
    pub(crate) fn file_name(path: &Path, generation: u64, rank: usize, n_ranks: usize) -> Result<String, Error> {
        let cause = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file, in UTF-8");
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let stem =
            stem.ok_or_else(|| Error::Io { path: path.to_owned(), action: "name a checkpoint's files", cause: cause() })?;
        Ok(format!("{stem}-{generation}-{:05}-of-{n_ranks:05}.safetensors", rank + 1))
    }

    /// The index of the checkpoint `NAME.safetensors`, if there is one, from the bytes that `read` returns.
    pub(crate) fn load_if_any(path: &Path, read: &mut ReadFile<'_>) -> Result<Option<Self>, Error> {
        let path = Self::path_of(path);
        match read(0, &path)? {
            Ok(bytes) => Self::parse(&bytes, &path).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Error::Io { path, action: "read the index of a checkpoint", cause }),
        }
    }

    /// Reads and checks the bytes of an index, which errors call `path`.
    pub(crate) fn parse(bytes: &[u8], path: &Path) -> Result<Self, Error> {
        let damaged = |reason: String| Error::Damaged { path: path.to_owned(), len_bytes: Some(bytes.len() as u64), reason };
        let json: Value = serde_json::from_slice(bytes).map_err(|error| damaged(error.to_string()))?;
        let format_version = format::check(path, json["metadata"][format::KEY].as_str(), bytes, &Content::default())?;
        let map = json["weight_map"].as_object().ok_or_else(|| damaged("it has no `weight_map`".to_owned()))?;
        let mut tensors = BTreeMap::new();
        for (name, file) in map {
            // Only files in the index's own folder.
            let is_beside = |file: &&str| Path::new(file).file_name() == Some(file.as_ref());
            let file = file.as_str().filter(is_beside);
            let file = file.ok_or_else(|| damaged(format!("`{name}` is in a file of another folder")))?;
            tensors.insert(name.clone(), file.to_owned());
        }
        Ok(Self { generation: json["metadata"]["generation"].as_u64().unwrap_or(0), tensors, format_version })
    }

    /// Writes the index atomically: from then on the checkpoint is this one.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Error> {
        let metadata = json!({
            "generation": self.generation, format::KEY: FORMAT_VERSION.to_string(), checksum::KEY: checksum::UNSET,
        });
        let json = json!({ "metadata": metadata, "weight_map": self.tensors });
        Ok(write_atomically(&Self::path_of(path), |writer| {
            let mut text = serde_json::to_vec_pretty(&json)?;
            text.push(b'\n');
            checksum::seal(&mut text, &Content::default());
            writer.write_all(&text)
        })?)
    }

    /// The files, each once.
    pub(crate) fn files(&self) -> Vec<&str> {
        let mut files: Vec<&str> = self.tensors.values().map(String::as_str).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// The generation of the next checkpoint of the name `NAME.safetensors`: greater than those of all existing files, whether or
    /// not an index lists them.
    pub(crate) fn next_generation(path: &Path) -> u64 {
        files_of(path).into_iter().map(|(generation, _)| generation).max().map_or(1, |newest| newest.saturating_add(1))
    }

    /// Removes the files of earlier checkpoints of the name `NAME.safetensors`, and of writes that a crash interrupted: all that
    /// are not listed in this index.
    pub(crate) fn remove_other_files(&self, path: &Path) {
        let kept = self.files();
        let is_kept = |file: &Path| file.file_name().and_then(|name| name.to_str()).is_some_and(|name| kept.contains(&name));
        for (_, file) in files_of(path).into_iter().filter(|(_, file)| !is_kept(file)) {
            // A file that cannot be removed only takes space.
            drop(fs::remove_file(file));
        }
        // No later generation writes files of the same names, so none would remove what a killed replica has left.
        if let Some((folder, stem)) = folder_and_stem(path) {
            remove_leftovers(folder, |name| generation_of(stem, name).is_some());
        }
    }

    /// Removes the index and the files of the checkpoint `NAME.safetensors`, which is a single file from now on. What cannot be
    /// removed only takes space.
    pub(crate) fn remove(path: &Path) {
        drop(fs::remove_file(Self::path_of(path)));
        Self::new(0, BTreeMap::new()).remove_other_files(path);
    }
}

/// All files of checkpoints of the name `NAME.safetensors` that are named as [`Index::file_name`] does, each with its generation.
pub(crate) fn files_of(path: &Path) -> Vec<(u64, PathBuf)> {
    let Some((folder, stem)) = folder_and_stem(path) else { return Vec::new() };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| Some((generation_of(stem, entry.file_name().to_str()?)?, entry.path()))).collect()
}

/// Where the files of checkpoints of the name `NAME.safetensors` are, and what their names begin with.
fn folder_and_stem(path: &Path) -> Option<(&Path, &str)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some((folder, path.file_stem()?.to_str()?))
}

/// The generation of one of the files of the checkpoint `STEM.safetensors`.
fn generation_of(stem: &str, name: &str) -> Option<u64> {
    stem_and_generation(name).filter(|(found, _)| *found == stem).map(|(_, generation)| generation)
}

/// The stem and the generation of a file's name if it is one of several of a checkpoint,
/// `STEM-GENERATION-00001-of-00004.safetensors`.
pub(crate) fn stem_and_generation(name: &str) -> Option<(&str, u64)> {
    let mut parts = name.strip_suffix(".safetensors")?.rsplitn(5, '-');
    let [n_ranks, "of", rank, generation, stem] = [(); 5].map(|()| parts.next().unwrap_or_default()) else { return None };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    [rank, n_ranks].into_iter().all(is_number).then(|| Some((stem, generation.parse().ok()?))).flatten()
}

pub(crate) fn is_index(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(SUFFIX))
}
