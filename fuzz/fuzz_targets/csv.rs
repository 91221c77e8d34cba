//! CSV text, read by brisk-table and by the `csv` crate.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

#[allow(dead_code, reason = "each target runs one of the checks")]
#[path = "../../crates/table/tests/it/any_bytes.rs"]
mod any_bytes;

static SCRATCH: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("there is a folder for temporary files"));

fuzz_target!(|bytes: &[u8]| any_bytes::check_csv(bytes, SCRATCH.path()));
