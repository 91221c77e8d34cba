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
use clap::Parser as _;

use command_line::{CommandLine, NEEDS, Suite};
use options::Options;
use row::Table;

#[expect(clippy::print_stdout, reason = "xtask reads them")]
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
        // The suite scaling starts it.
        [_, reader, ..] if reader == scaling::READER => {
            let args: Vec<_> = std::env::args_os().skip(2).map(|arg| arg.to_string_lossy().into_owned()).collect();
            scaling::reader(&args).map(|()| ExitCode::SUCCESS)
        }
        [program, needs, args @ ..] if needs == NEEDS => {
            // Help and errors are printed when the suite is run.
            if let Ok(line) = CommandLine::try_parse_from(std::iter::once(program).chain(args)) {
                print!("{line}");
            }
            Ok(ExitCode::SUCCESS)
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
    let suite = CommandLine::parse().suite;
    let options = Options::new(&suite)?;
    // JSON rows that the suite has already printed.
    let mut printed = Vec::new();
    let tables = match &suite {
        Suite::Higgs(_) => higgs::run(&options)?,
        Suite::Amp(amp) if amp.profile => return amp::profile(&options),
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
