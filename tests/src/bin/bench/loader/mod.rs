//! Rows on their way to a training step: from text to a table, from a table to batches.

mod batches;
#[cfg(target_os = "linux")]
mod cold;
mod import;
pub(crate) mod large;
mod memory;
mod memory_limit;
mod open;
mod sparse;
mod tables;

use std::path::Path;

use anyhow::Result;

use crate::options::{Options, Part};
use crate::row::{Row, Table};

/// What measures a part, with its files in a folder.
type Measure = fn(&Options, &Path) -> Result<Vec<Row>>;

pub(crate) const PARTS: [Part<Measure>; 6] = [
    ("batches", batches::run),
    ("memory", |options, _| memory::run(options)),
    ("import", import::run),
    ("open", open::run),
    ("large", large::run),
    ("cold", cold),
];

#[expect(clippy::print_stdout, reason = "where the files lie belongs to the report")]
pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    let folder = tempfile::Builder::new().prefix("brisk-bench-").tempdir()?;
    println!("files in {}", folder.path().display());
    let mut rows = Vec::new();
    for (_, measure) in PARTS.iter().filter(|(name, _)| options.wants(name)) {
        rows.extend(measure(options, folder.path())?);
    }
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}

#[cfg(target_os = "linux")]
use cold::run as cold;

/// Only Linux drops a file from the page cache, and counts the reads that show it.
#[cfg(not(target_os = "linux"))]
fn cold(_: &Options, _: &Path) -> Result<Vec<Row>> {
    Ok(Vec::new())
}
