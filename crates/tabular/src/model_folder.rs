//! The files in the folder of a model, or of several.

use std::fs;
use std::io::{ErrorKind, Write};
use std::ops::Range;
use std::path::Path;

use brisk_atomic_file::write_atomically;
use brisk_train::Error as TrainError;
use serde_json::Value;

use crate::error::Error;

pub(super) const DESCRIPTION: &str = "model.json";
pub(super) const PARAMETERS: &str = "parameters.safetensors";

/// The file of a folder of [several models](crate::TabularModels), each of which has a folder in it.
pub(super) const TARGETS: &str = "targets.json";

/// How many models the folder of several has; none if it is another one, or damaged.
pub(super) fn n_models(folder: &Path) -> usize {
    let index = read(&folder.join(TARGETS)).ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
    index.and_then(|index| Some(index["targets"].as_array()?.len())).unwrap_or(0)
}

/// Removes models from the folder of several, and their folders, unless these have other files.
pub(super) fn remove_models(folder: &Path, models: Range<usize>) -> Result<(), Error> {
    for folder in models.map(|i| folder.join(i.to_string())) {
        remove(&folder.join(DESCRIPTION))?;
        remove(&folder.join(PARAMETERS))?;
        // An error is that of a folder with other files, or of none.
        drop(fs::remove_dir(folder));
    }
    Ok(())
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    fs::read(path).map_err(|cause| TrainError::Io { path: path.to_owned(), action: "read", cause }.into())
}

/// The JSON of a file, which has this version of its format.
pub(super) fn parsed(path: &Path, text: &[u8], expected: u64) -> Result<Value, Error> {
    let damaged = |error| Error::ModelFile { path: path.to_owned(), problem: format!("is not JSON: {error}") };
    let value: Value = serde_json::from_slice(text).map_err(damaged)?;
    let found = match &value["format"] {
        found if *found == expected => return Ok(value),
        Value::Null => "unknown".to_owned(),
        found => found.to_string(),
    };
    let version = value["brisk_version"].as_str().unwrap_or("unknown").to_owned();
    Err(Error::ModelFormat { path: path.to_owned(), found, expected, version })
}

/// Writes a file of JSON.
pub(super) fn write(path: &Path, text: serde_json::Result<String>) -> Result<(), Error> {
    let text = text.map_err(|error| Error::ModelFile { path: path.to_owned(), problem: error.to_string() })?;
    Ok(write_atomically(path, |file| file.write_all(text.as_bytes())).map_err(TrainError::from)?)
}

/// Removes a file, if it is there.
pub(super) fn remove(path: &Path) -> Result<(), Error> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != ErrorKind::NotFound => {
            Err(TrainError::Io { path: path.to_owned(), action: "remove", cause }.into())
        }
        _ => Ok(()),
    }
}
