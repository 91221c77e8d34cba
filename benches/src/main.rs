//! Measures brisk and its peers, in alternation within one run, and prints the ratios.

mod amp;
mod cifar10;
mod command_line;
mod counting;
mod higgs;
mod higgs_table;
mod kernels;
mod loader;
mod options;
mod overhead;
mod peer;
mod replicate;
mod row;
mod scaling;
mod speedups;
mod tabular;

use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use command_line::Suite;
use options::Options;
use row::Table;

/// Measures brisk and prints its figures, the reference's and their ratio
///
/// `cargo xtask bench SUITE` builds this program for release and runs it. The crates table, loader, kernels, program and train also have benches of
/// their own: `cargo bench -p brisk-table`.
#[derive(Debug, Parser)]
#[command(name = "bench", subcommand_value_name = "SUITE", subcommand_help_heading = "Suites")]
struct CommandLine {
    #[command(subcommand)]
    suite: Suite,
}

#[expect(clippy::print_stderr, reason = "an error goes to standard error")]
fn main() -> ExitCode {
    let ended = match std::env::args_os().collect::<Vec<_>>().as_slice() {
        // The loader suite starts it.
        [_, child, path] if child == loader::large::CHILD => loader::large::child(path.as_ref()),
        // `mpirun` starts it for the suites replicate and scaling.
        [_, rank, ..] if rank == replicate::RANK => {
            let args: Vec<_> = std::env::args_os().skip(2).map(|arg| arg.to_string_lossy().into_owned()).collect();
            replicate::rank(&args).map(|()| ExitCode::SUCCESS)
        }
        _ => run().map(|()| ExitCode::SUCCESS),
    };
    match ended {
        Ok(code) => code,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "its figures are its result")]
fn run() -> Result<()> {
    let CommandLine { suite } = CommandLine::parse();
    let options = Options::new(&suite)?;
    // JSON rows that the suite has already printed.
    let mut printed = Vec::new();
    let tables = match &suite {
        Suite::Higgs(_) => higgs::run(&options)?,
        Suite::Amp(amp) => amp::run(&options, &amp.only)?,
        Suite::Replicate(replicate) => replicate::run(&options, &replicate.only)?,
        Suite::Speedups(_) => speedups::run(&options)?,
        Suite::Overhead(_) => overhead::run(&options)?,
        Suite::Loader(loader) => loader::run(&options, &loader.only)?,
        Suite::Cifar10(suite) => {
            let (tables, ladder) = cifar10::run(&options, suite)?;
            printed = ladder;
            tables
        }
        Suite::Tabular(suite) => tabular::run(&options, suite)?,
        Suite::Kernels(kernels) => kernels::run(&options, &kernels.only)?,
        Suite::Scaling(scaling) => {
            let (tables, predicted) = scaling::run(&options, scaling)?;
            printed = predicted;
            tables
        }
    };
    for table in &tables {
        print!("{table}");
    }
    if let Some(path) = &options.json {
        let rows: Vec<_> = tables.iter().flat_map(Table::json).chain(printed).collect();
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}: cannot write the figures", path.display()))?;
    }
    Ok(())
}
