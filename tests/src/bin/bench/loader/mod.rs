//! Rows on their way to a training step: from text to a table, from a table to batches.

mod batches;
#[cfg(target_os = "linux")]
mod cold;
mod import;
pub(crate) mod large;
mod memory;
mod memory_limit;
mod open;
mod peers;
mod sparse;
mod tables;

use std::str::FromStr;

use anyhow::{Result, bail};
use tempfile::TempDir;

use crate::options::Options;
use crate::row::Row;

/// A part of the suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Batches in order and shuffled, warm.
    Batches,
    /// Allocations an epoch, growth over many.
    Memory,
    /// Text to tables.
    Import,
    /// Opening a big table.
    Open,
    /// A table larger than memory.
    Large,
    /// A file that is not in memory.
    Cold,
}

const PARTS: [(&str, Part); 6] = [
    ("batches", Part::Batches),
    ("memory", Part::Memory),
    ("import", Part::Import),
    ("open", Part::Open),
    ("large", Part::Large),
    ("cold", Part::Cold),
];

impl FromStr for Part {
    type Err = anyhow::Error;

    fn from_str(word: &str) -> Result<Self> {
        match PARTS.iter().find(|(name, _)| *name == word) {
            Some((_, part)) => Ok(*part),
            None => bail!("--only wants one of {}, got `{word}`", PARTS.map(|(name, _)| name).join(", ")),
        }
    }
}

#[expect(clippy::print_stdout, reason = "where the files lie belongs to the report")]
pub(crate) fn run(options: &Options) -> Result<Vec<Row>> {
    let folder = tempfile::Builder::new().prefix("brisk-bench-").tempdir()?;
    println!("files in {}", folder.path().display());
    let mut rows = Vec::new();
    for (_, part) in PARTS {
        if options.parts.is_empty() || options.parts.contains(&part) {
            rows.extend(measure(part, options, &folder)?);
        }
    }
    Ok(rows)
}

fn measure(part: Part, options: &Options, folder: &TempDir) -> Result<Vec<Row>> {
    match part {
        Part::Batches => batches::run(options, folder.path()),
        Part::Memory => memory::run(options),
        Part::Import => import::run(options, folder.path()),
        Part::Open => open::run(options, folder.path()),
        Part::Large => large::run(options, folder.path()),
        #[cfg(target_os = "linux")]
        Part::Cold => cold::run(options, folder.path()),
        // Only there is a file dropped from the page cache, and the reads counted that show it.
        #[cfg(not(target_os = "linux"))]
        Part::Cold => Ok(Vec::new()),
    }
}
