//! The guarantees of the crate, one module per topic.
#![expect(clippy::missing_assert_message, reason = "an equality that fails shows both sides, which is message enough in a test")]

#[cfg(feature = "csv")]
mod any_bytes;
#[cfg(feature = "arrow")]
mod arrow;
mod attacks;
mod categories;
#[cfg(feature = "cifar")]
mod cifar;
mod columns;
mod crash;
mod csv;
#[cfg(feature = "csv")]
mod damage;
mod damaged;
mod dest;
mod formats;
#[cfg(feature = "idx")]
mod idx;
#[cfg(feature = "images")]
mod images;
mod interop;
mod like;
mod messages;
#[cfg(feature = "npy")]
mod npy;
mod packed;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "loader")]
mod reading;
mod real_columns;
mod real_files;
#[cfg(all(feature = "http", feature = "loader"))]
mod remote;
#[cfg(feature = "loader")]
mod row_source;
#[cfg(all(feature = "csv", feature = "npy", feature = "idx", feature = "cifar", feature = "images", feature = "parquet"))]
mod settings;
mod shards;
#[cfg(all(unix, feature = "images", feature = "parquet", feature = "npy", feature = "idx", feature = "cifar"))]
mod special_files;
#[cfg(feature = "loader")]
mod streamed;
mod suspicious;
mod svmlight;
mod table;

use std::io::Write;
use std::path::PathBuf;

use tempfile::TempDir;

/// A temporary folder, and the path of a table in it.
fn scratch() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
    let table = folder.path().join("table.safetensors");
    (folder, table)
}

/// Reports that something was not tested, so that a green run does not claim more than it tested. Bypasses the harness, which
/// hides the output of `eprintln!` in a test that passes.
fn not_run(what: &str, why: &str) {
    _ = writeln!(std::io::stderr(), "NOT RUN: {what}: {why}");
}
