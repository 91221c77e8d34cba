//! The command line of the comparison of random programs. `cargo xtask fuzz-tensors` includes this file, so that it documents and
//! checks the same options.

use std::path::PathBuf;

use clap::Parser;

use super::CasePrecision;

/// Runs random programs of tensor operations, forward and backward, and compares the results
///
/// Each program runs with and without fusion, with one thread and with two, and on every device given: on the CPU all results
/// must be bit-identical, on other devices equal within the error that rounding can cause. With `--peers` they are compared with
/// PyTorch as well, in float64 with the rounding of the precision. A program that fails is printed with as few steps as still
/// fail, and with the command that repeats it; the exit status is then 1.
#[derive(Clone, Debug, Parser)]
#[command(name = "fuzz-tensors")]
pub(crate) struct CommandLine {
    /// Number of programs in each precision
    #[arg(long, value_name = "N", default_value_t = 200, conflicts_with = "minutes")]
    pub(crate) programs: u64,
    /// Runs programs for M minutes instead
    #[arg(long, value_name = "M", value_parser = minutes)]
    pub(crate) minutes: Option<f64>,
    /// Seed of the first program; the following ones have the following seeds
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Can be given several times [default: all]
    #[arg(long = "precision", value_name = "PRECISION")]
    pub(crate) precisions: Vec<CasePrecision>,
    /// Another device: software, gpu, or the name or index of an adapter; can be given several times
    #[arg(long = "device", value_name = "NAME")]
    pub(crate) devices: Vec<String>,
    /// Of each N programs, run one on the other devices, which take longer
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) device_every: u64,
    /// Compares with PyTorch
    #[arg(long)]
    pub(crate) peers: bool,
    /// With --peers, make a Python environment below `target` if there is none, which downloads several GB
    #[arg(long, requires = "peers")]
    pub(crate) yes: bool,
    /// Writes the counts and the failures to FILE, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

fn minutes(word: &str) -> Result<f64, String> {
    match word.parse() {
        Ok(minutes) if minutes > 0.0 && minutes <= 10_000.0 => Ok(minutes),
        _ => Err("expected a number above 0 and at most 10000".to_owned()),
    }
}
