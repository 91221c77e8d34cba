//! Measures brisk beside its peers, turn by turn in one run, and prints the ratios.

mod amp;
mod counting;
mod higgs;
mod kernels;
mod loader;
mod options;
mod peer;
mod replicate;
mod row;
mod scaling;

use std::process::ExitCode;

use anyhow::{Context, Result};

use options::{Options, Suite};
use row::Table;

#[expect(clippy::print_stderr, reason = "an error goes to standard error")]
fn main() -> ExitCode {
    let ended = match std::env::args_os().collect::<Vec<_>>().as_slice() {
        // Started by the loader suite, not by people.
        [_, child, path] if child == loader::large::CHILD => loader::large::child(path.as_ref()),
        // Started by `mpirun` for the suites replicate and scaling.
        [_, rank, ..] if rank == replicate::RANK => {
            replicate::rank(&std::env::args().skip(2).collect::<Vec<_>>()).map(|()| ExitCode::SUCCESS)
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
    let Some(options) = Options::read(std::env::args().skip(1))? else {
        println!("{}", options::HELP);
        return Ok(());
    };
    let mut predictions = Vec::new();
    let tables = match options.suite {
        Suite::Higgs => higgs::run(&options)?,
        Suite::Loader => loader::run(&options)?,
        Suite::Kernels => kernels::run(&options)?,
        Suite::Amp => amp::run(&options)?,
        Suite::Replicate => replicate::run(&options)?,
        Suite::Scaling => {
            let (tables, predicted) = scaling::run(&options)?;
            predictions = predicted;
            tables
        }
    };
    for table in &tables {
        print!("{table}");
    }
    if let Some(path) = &options.json {
        let rows: Vec<_> = tables.iter().flat_map(Table::json).chain(predictions).collect();
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}: cannot write the figures", path.display()))?;
    }
    Ok(())
}
