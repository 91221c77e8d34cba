//! The file of a checkpoint.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

#[allow(dead_code, reason = "each target runs one of the checks")]
#[path = "../../crates/train/tests/it/any_checkpoint.rs"]
mod any_checkpoint;

static SCRATCH: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("there is a folder for temporary files"));

fuzz_target!(|bytes: &[u8]| any_checkpoint::check_checkpoint(bytes, SCRATCH.path()));
