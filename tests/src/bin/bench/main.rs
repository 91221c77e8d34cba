//! Measures brisk beside its peers, turn by turn in one run, and prints the ratios.

mod higgs;
mod row;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brisk_program::{Device, Selection};

use row::Row;

const HELP: &str = "\
bench higgs [--device NAME] [--peers] [--smoke] [--rows N] [--rounds N] [--json FILE]

higgs     training 28-256-256-256-1, f32, Adam, at batch 1024 and 8192, on a reproducible HIGGS-shaped table
--peers   the same by PyTorch on the CPU, turn by turn with ours (needs BRISK_PYTHON, which cargo xtask bench sets)
--smoke   everything once and small, to see that it runs

Benchmarks of single crates: cargo bench -p brisk-loader | brisk-table | brisk-kernels | brisk-program";

/// The command line, read.
pub(crate) struct Options {
    pub(crate) device: Device,
    pub(crate) peers: Option<PathBuf>,
    pub(crate) n_rows: usize,
    pub(crate) n_rounds: usize,
    json: Option<PathBuf>,
}

#[expect(clippy::print_stderr, reason = "an error goes to standard error")]
fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[expect(clippy::print_stdout, reason = "its figures are its result")]
fn run() -> Result<()> {
    let Some(options) = options()? else {
        println!("{HELP}");
        return Ok(());
    };
    println!("{}", Row::heading(&options.device));
    let rows = higgs::run(&options)?;
    for row in &rows {
        println!("{row}");
    }
    if let Some(path) = &options.json {
        let rows: Vec<_> = rows.iter().map(|row| row.json(&options.device)).collect();
        let text = serde_json::to_string_pretty(&rows)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}: cannot write the figures", path.display()))?;
    }
    Ok(())
}

fn options() -> Result<Option<Options>> {
    let mut selection = Selection::Cpu;
    let (mut peers, mut n_rows, mut n_rounds, mut json, mut suite) = (false, 200_000, 5, None, None);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().with_context(|| format!("{arg} wants a value; see --help"));
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--device" => selection = value()?.parse()?,
            "--peers" => peers = true,
            "--smoke" => (n_rows, n_rounds) = (10_000, 1),
            "--rows" => n_rows = value()?.parse().context("--rows wants a whole number")?,
            "--rounds" => n_rounds = value()?.parse().context("--rounds wants a whole number")?,
            "--json" => json = Some(PathBuf::from(value()?)),
            "higgs" => suite = Some(arg),
            other => bail!("no benchmark or option `{other}`; see --help"),
        }
    }
    if suite.is_none() {
        return Ok(None);
    }
    if n_rows == 0 || n_rounds == 0 {
        bail!("--rows and --rounds want at least 1");
    }
    let python = || std::env::var_os("BRISK_PYTHON").map(PathBuf::from);
    let peers = match peers {
        true => Some(python().context("--peers wants BRISK_PYTHON to name a Python with torch; `cargo xtask bench` sets it")?),
        false => None,
    };
    let device = Device::builder().selection(selection).open()?;
    Ok(Some(Options { device, peers, n_rows, n_rounds, json }))
}
