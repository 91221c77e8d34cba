//! `cargo xtask bench`: builds the benchmarks for release, provides the peers that they need, and passes the command line on to
//! them.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::Args;

use crate::mpi;
use crate::packages::Install;
use crate::peers::{self, Consent};
use crate::programs::{Profile, built, finish};
use crate::shell::output;

/// Measures brisk, and prints its figures, those of the reference, and their ratio
///
/// The suites and their options are those of the program that measures: `cargo xtask bench --help` builds it and prints its help.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// A suite and its options; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    suite: Vec<OsString>,
}

pub(crate) fn run(Options { suite }: &Options) -> Result<ExitCode> {
    let mut program = built("bin", "bench", Profile::Release)?;
    let needs = output(Command::new(&program).arg("--needs").args(suite))?;
    let needs = |need: &str| needs.lines().find_map(|line| line.strip_prefix(need));
    let is_given = needs("yes").is_some() || std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    if needs("mpi").is_some() {
        mpi::ensure(if is_given { Install::Allowed } else { Install::Never })?;
        program = built("bin", "bench", Profile::ReleaseWithMpi)?;
    }
    let mut bench = Command::new(program);
    if needs("burn").is_some() {
        bench.env("BRISK_BURN", peers::burn()?);
    }
    if let Some(packages) = needs("python ") {
        bench.env("BRISK_PYTHON", peers::python(packages, if is_given { Consent::Given } else { Consent::Missing })?);
    }
    finish(bench.args(suite))
}
