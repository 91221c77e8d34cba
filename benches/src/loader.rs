//! Data loading: from text to a table, and from a table to batches.

mod batches;
#[cfg(target_os = "linux")]
mod cold;
mod import;
pub(crate) mod large;
pub(crate) mod memory;
pub(crate) mod memory_limit;
mod open;
mod sparse;
mod tables;

use std::path::Path;

use anyhow::Result;

use crate::command_line::{LoaderPart, selected};
use crate::options::Options;
use crate::row::{Row, Table};

#[expect(clippy::print_stdout, reason = "the folder of the files belongs to the report")]
pub(crate) fn run(options: &Options, only: &[LoaderPart]) -> Result<Vec<Table>> {
    let folder = tempfile::Builder::new().prefix("brisk-bench-").tempdir()?;
    println!("files in {}", folder.path().display());
    let mut rows = Vec::new();
    for part in selected(only) {
        rows.extend(measure(part, options, folder.path())?);
    }
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}

/// Measures a part that keeps its files in `folder`.
fn measure(part: LoaderPart, options: &Options, folder: &Path) -> Result<Vec<Row>> {
    match part {
        LoaderPart::Batches => batches::run(options, folder),
        LoaderPart::Memory => memory::run(options),
        LoaderPart::Import => import::run(options, folder),
        LoaderPart::Open => open::run(options, folder),
        LoaderPart::Large => large::run(options, folder),
        LoaderPart::Cold => cold(options, folder),
    }
}

#[cfg(target_os = "linux")]
use cold::run as cold;

/// Only Linux can drop a file from the page cache and count the reads that prove it.
#[cfg(not(target_os = "linux"))]
fn cold(_: &Options, _: &Path) -> Result<Vec<Row>> {
    Ok(Vec::new())
}
