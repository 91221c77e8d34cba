use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brisk_examples::print;

/// What `--help` prints, and the documentation of the options.
const HELP: &str = "\
Says what is in a table: a safetensors file, a folder of shards, or its index. Nothing but the header and the rows shown is read.

    cargo run --release --example inspect -- TABLE [OPTIONS]

    --rows N      how many of the first rows to show                             [5]
    --verify      check every byte against the table's checksums
    --json FILE   what the table is, as one JSON object

A safetensors file of another program is listed, tensor by tensor.";

/// The command line, read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) table: PathBuf,
    pub(crate) n_rows: usize,
    pub(crate) checks: Checks,
    pub(crate) json: Option<PathBuf>,
}

/// How closely to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checks {
    /// The header alone.
    Header,
    /// All bytes.
    Bytes,
}

impl Options {
    /// Reads the command line; `None` if help was asked for and printed.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let (mut paths, mut n_rows, mut checks, mut json) = (Vec::new(), 5, Checks::Header, None);
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--help" | "-h" => return print::result(HELP).map(|()| None),
                "--rows" => n_rows = whole(&value()?)?,
                "--verify" => checks = Checks::Bytes,
                "--json" => json = Some(PathBuf::from(value()?)),
                option if option.starts_with('-') => bail!("unknown option `{name}`; see --help"),
                _ => paths.push(PathBuf::from(name)),
            }
        }
        match <[PathBuf; 1]>::try_from(paths) {
            Ok([table]) => Ok(Some(Self { table, n_rows, checks, json })),
            Err(paths) => bail!("wants one TABLE, got {}; see --help", paths.len()),
        }
    }
}

fn whole(word: &str) -> Result<usize> {
    match word.parse() {
        Ok(n @ 0..=100_000) => Ok(n),
        _ => bail!("--rows wants a whole number from 0 to 100000, got `{word}`"),
    }
}
