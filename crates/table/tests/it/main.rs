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
#[cfg(feature = "half")]
mod destinations;
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

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use brisk_table::{Error, ImportReport, Importer, SourceError, Table, import};
use tempfile::TempDir;

/// A temporary folder, and the path of a table in it.
fn scratch() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("the system has a folder for temporary files");
    let table = folder.path().join("table.safetensors");
    (folder, table)
}

/// Why a source could not be imported.
fn reason<T>(result: Result<T, Error>) -> Option<SourceError> {
    match result {
        Err(Error::Source { reason, .. }) => Some(*reason),
        _ => None,
    }
}

/// A file to import, in a temporary folder.
struct Import {
    _folder: TempDir,
    source: PathBuf,
    dest: PathBuf,
}

impl Import {
    fn of(name: &str, text: impl AsRef<[u8]>) -> Self {
        let (folder, dest) = scratch();
        let source = folder.path().join(name);
        fs::write(&source, text).unwrap();
        Self { _folder: folder, source, dest }
    }

    fn run(&self, options: &impl Importer) -> Result<(ImportReport, Table), Error> {
        let report = import(&self.source, &self.dest, options);
        let n_files = fs::read_dir(self.source.parent().unwrap()).unwrap().count();
        assert_eq!(n_files, if report.is_ok() { 2 } else { 1 }, "files in the folder after {report:?}");
        let report = report?;
        let table = Table::open(&self.dest).unwrap();
        table.verify().unwrap();
        assert_eq!((table.n_rows(), table.column_names()), (report.n_rows, &report.column_names[..]));
        Ok((report, table))
    }
}

/// Reports that something was not tested, so that a green run does not claim more than it tested. Bypasses the harness, which
/// hides the output of `eprintln!` in a test that passes.
fn not_run(what: &str, why: &str) {
    _ = writeln!(std::io::stderr(), "NOT RUN: {what}: {why}");
}
