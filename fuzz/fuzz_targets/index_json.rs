//! The index of a folder of shards.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "each target runs one of the checks")]
#[path = "../../crates/table/tests/it/any_bytes.rs"]
mod any_bytes;

fuzz_target!(|bytes: &[u8]| any_bytes::check_index(bytes));
