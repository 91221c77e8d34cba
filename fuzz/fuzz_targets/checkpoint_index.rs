//! The index of a checkpoint of several files.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

#[allow(dead_code, reason = "each target runs one of the checks")]
#[path = "../../crates/train/tests/it/any_checkpoint.rs"]
mod any_checkpoint;

/// A folder with the two files that an index may name.
static PARTS: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().expect("there is a folder for temporary files");
    any_checkpoint::write_parts(folder.path());
    folder
});

fuzz_target!(|bytes: &[u8]| any_checkpoint::check_index(bytes, PARTS.path()));
