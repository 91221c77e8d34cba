//! What says which file a tensor is in, where a checkpoint has several.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::Error;
use crate::atomic_file::write_atomically;

/// `NAME.safetensors.index.json`, beside the files that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Index {
    /// Which of the checkpoints of this name it is: files of the one before stay whole until this one is there.
    pub(crate) generation: u64,
    /// The file of each tensor.
    pub(crate) tensors: BTreeMap<String, String>,
}

const SUFFIX: &str = ".index.json";

impl Index {
    /// The path of the index of the checkpoint `NAME.safetensors`; of itself, the same.
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
        let source = || io::Error::new(io::ErrorKind::InvalidInput, "the path names no file, in UTF-8");
        let stem = path.file_stem().and_then(|stem| stem.to_str());
        let stem =
            stem.ok_or_else(|| Error::Io { path: path.to_owned(), action: "name a checkpoint's files", source: source() })?;
        Ok(format!("{stem}-{generation}-{:05}-of-{n_ranks:05}.safetensors", rank + 1))
    }

    /// The index of the checkpoint `NAME.safetensors`, if there is one.
    pub(crate) fn load_if_any(path: &Path) -> Result<Option<Self>, Error> {
        let path = Self::path_of(path);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Io { path, action: "read the index of a checkpoint", source }),
        };
        let damaged = |reason: String| Error::Damaged { path: path.clone(), len_bytes: bytes.len() as u64, reason };
        let json: Value = serde_json::from_slice(&bytes).map_err(|error| damaged(error.to_string()))?;
        let map = json["weight_map"].as_object().ok_or_else(|| damaged("it has no `weight_map`".to_owned()))?;
        let mut tensors = BTreeMap::new();
        for (name, file) in map {
            // A name of a file beside it, and nowhere else.
            let is_beside = |file: &&str| Path::new(file).file_name() == Some(file.as_ref());
            let file =
                file.as_str().filter(is_beside).ok_or_else(|| damaged(format!("`{name}` is in {file}, no file beside it")))?;
            tensors.insert(name.clone(), file.to_owned());
        }
        Ok(Some(Self { generation: json["metadata"]["generation"].as_u64().unwrap_or(0), tensors }))
    }

    /// Writes it, or leaves what is there: from then on the checkpoint is this one.
    pub(crate) fn save(&self, path: &Path) -> Result<(), Error> {
        let json = json!({ "metadata": { "generation": self.generation }, "weight_map": self.tensors });
        write_atomically(&Self::path_of(path), |writer| {
            serde_json::to_writer_pretty(&mut *writer, &json)?;
            writer.write_all(b"\n")
        })
    }

    /// The files, each once.
    pub(crate) fn files(&self) -> Vec<&str> {
        let mut files: Vec<&str> = self.tensors.values().map(String::as_str).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Removes the files beside the checkpoint `NAME.safetensors` that this index names, whose place others have taken.
    pub(crate) fn remove_files(&self, path: &Path) {
        for file in self.files() {
            // One that stays takes room, and is read by nobody.
            drop(fs::remove_file(path.with_file_name(file)));
        }
    }
}

/// Whether a path is that of an index.
pub(crate) fn is_index(path: &Path) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(SUFFIX))
}
