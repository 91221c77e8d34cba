//! The command line of the conformance runner. `cargo xtask conformance` includes this file, so that it documents and checks the
//! same options.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Parser, ValueEnum};

/// Runs cases whose expected results were computed by PyTorch, and prints a line for each case that fails
///
/// A case is a safetensors file. Each runs on every device and in every precision given. The last line is `N passed, N failed`;
/// the exit status is 1 if any failed.
///
/// In f16 and bf16, operators are recorded under autocast with their input stored in that format, and tolerances are those of the
/// format. A result beyond them passes if f32 on equally rounded operands is off by as much.
#[derive(Clone, Debug, Parser)]
#[command(name = "conformance")]
pub(crate) struct CommandLine {
    /// Folder of cases [default: the fixtures in tests/conformance]
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// cpu, software, gpu, or the name or index of an adapter; can be given several times
    /// [default: cpu, and the first adapter if there is one]
    #[arg(long = "device", value_name = "NAME")]
    pub(crate) devices: Vec<String>,
    /// Can be given several times [default: f32]
    #[arg(long = "precision", value_name = "PRECISION")]
    pub(crate) precisions: Vec<CasePrecision>,
    /// Runs only cases of this operator; can be given several times
    #[arg(long = "op", value_name = "OP")]
    pub(crate) ops: Vec<String>,
    /// Leaves out cases whose operator brisk does not have, and names these operators at the end; without this option such cases
    /// fail
    #[arg(long)]
    pub(crate) built: bool,
    /// Runs only the training cases, each split across N replicas, which are threads; can be given several times
    ///
    /// All replicas must produce bit-identical results, twice. To split across processes instead, start this program with the
    /// example `launch`.
    #[arg(long = "replicas", value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(1..=1024), conflicts_with = "ops")]
    pub(crate) replicas: Vec<usize>,
}

/// The precision that cases run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CasePrecision {
    F32,
    F16,
    Bf16,
}
