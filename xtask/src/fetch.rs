//! `cargo xtask fetch`: downloads public data sets from their sources, checks them, and imports them into tables.

mod catalogue;
mod checksum;
mod download;

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::shell::{command, run as must, target_dir};
use catalogue::{DATA_SETS, DataSet};
use download::Client;

/// Downloads a public data set, checks it and imports it into tables
///
/// A download that was interrupted continues where it stopped, if the server can do that. A file is named without `.part` only
/// once its size and checksum are those of the published file, and is not downloaded again then. The tables go to the same
/// folder.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The data set
    #[arg(value_name = "NAME", value_parser = clap::builder::PossibleValuesParser::new(DATA_SETS.iter().map(|set| set.name)))]
    name: String,
    /// Folder for the files and the tables [default: target/data/NAME]
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Download from this address, a mirror with files of the same names, instead of the source
    #[arg(long, value_name = "URL")]
    from: Option<String>,
    /// Leave out the import
    #[arg(long)]
    only_download: bool,
}

/// Downloads and imports.
pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let set = DATA_SETS.iter().find(|set| set.name == options.name).context("the parser accepts only these names")?;
    let folder = options.to.clone().unwrap_or_else(|| target_dir().join("data").join(set.name));
    // The example `import` runs in another folder than this program.
    let folder = std::path::absolute(&folder).with_context(|| format!("{}: not a path", folder.display()))?;
    fs::create_dir_all(&folder).with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    let client = Client::new();
    let base = options.from.as_deref().unwrap_or(set.url);
    for file in set.files {
        client
            .download(&format!("{}/{}", base.trim_end_matches('/'), file.name), file, &folder, &mut |line| eprintln!("{line}"))?;
    }
    if !options.only_download {
        import(set, &folder)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Makes the tables that do not exist yet.
fn import(set: &DataSet, folder: &std::path::Path) -> Result<()> {
    for import in set.imports {
        let table = folder.join(import.table);
        if table.exists() {
            eprintln!("{}: exists already", table.display());
            continue;
        }
        let mut import_rows = command("cargo run --release --package brisk-examples --example import --");
        must(import_rows.arg(folder.join(import.source)).arg(&table).args(import.options))?;
    }
    eprintln!("next: cargo run --release --example {} {}", set.example, set.example_options(folder));
    Ok(())
}
