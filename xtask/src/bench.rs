//! `cargo xtask bench`: builds the benchmarks for release, provides their peers, and runs a suite.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::Result;
use clap::{Args, Subcommand};

use crate::mpi;
use crate::packages::Install;
use crate::peers::{self, Consent};
use crate::programs::{Profile, built, finish};
use crate::shell::command;

#[path = "../../benches/src/command_line.rs"]
#[expect(dead_code, reason = "the options are checked here and read by the program that measures")]
mod command_line;

/// Measures brisk, and prints its figures, those of the reference, and their ratio
///
/// A reference is a hardware limit such as a copy in memory or, with --peers, another library in the same run. Python libraries are imported by the Python that
/// BRISK_PYTHON names, or else by the one in target/peers-venv. Burn is measured by the program that BRISK_BURN names, or else by benches/peers/burn, which is built
/// in target/burn-peer and takes about forty minutes of one core the first time. For replicate and scaling, the peer is MPI.
#[derive(Debug, Args)]
#[command(subcommand_value_name = "SUITE", subcommand_help_heading = "Suites")]
pub(crate) struct Options {
    #[command(subcommand)]
    suite: Suite,
    /// Makes target/peers-venv (several GB to download) or installs Open MPI without asking; implied if the variable CI is set
    #[arg(long, global = true)]
    yes: bool,
}

#[derive(Debug, Subcommand)]
enum Suite {
    #[command(flatten)]
    Own(command_line::Suite),
    /// The benches of brisk-table: `cargo bench -p brisk-table`
    Table {
        /// Measures pandas, pyarrow and polars in the same run
        #[arg(long)]
        peers: bool,
        /// Size of the imported text, in MiB, and of the table that is larger than memory
        #[arg(long, value_name = "N")]
        mb: Option<u32>,
        /// Imports this file instead of a generated one
        #[arg(long, value_name = "FILE")]
        file: Option<PathBuf>,
        #[command(flatten)]
        smoke: Smoke,
    },
    /// The benches of brisk-program: `cargo bench -p brisk-program`
    Program(Smoke),
    /// The benches of brisk-train: `cargo bench -p brisk-train`
    Train(Smoke),
}

#[derive(Debug, Args)]
struct Smoke {
    /// Runs everything once on little data, to check that it works
    #[arg(long)]
    smoke: bool,
}

pub(crate) fn run(options: &Options, args: &[OsString]) -> Result<ExitCode> {
    let consent =
        if options.yes || std::env::var_os("CI").is_some_and(|ci| !ci.is_empty()) { Consent::Given } else { Consent::Missing };
    match &options.suite {
        Suite::Own(suite) => run_suite(suite, args, consent),
        Suite::Table { peers, mb, file, smoke } => {
            let python = peers.then(|| peers::python(peers::TABLE_PACKAGES, consent)).transpose()?;
            let mut bench = cargo_bench("brisk-table", smoke);
            if let Some(mb) = mb {
                bench.arg("--mb").arg(mb.to_string());
            }
            if let Some(file) = file {
                // cargo runs benches in the folder of their package.
                bench.arg("--file").arg(std::path::absolute(file)?);
            }
            bench.envs(python.map(|python| ("BRISK_PYTHON", python)));
            finish(&mut bench)
        }
        Suite::Program(smoke) => finish(&mut cargo_bench("brisk-program", smoke)),
        Suite::Train(smoke) => finish(&mut cargo_bench("brisk-train", smoke)),
    }
}

fn run_suite(suite: &command_line::Suite, args: &[OsString], consent: Consent) -> Result<ExitCode> {
    let python = suite.needs_python().then(|| peers::python(packages(suite), consent)).transpose()?;
    let burn = suite.needs_burn().then(peers::burn).transpose()?;
    let profile = if suite.needs_mpi() {
        mpi::ensure(if consent == Consent::Given { Install::Allowed } else { Install::Never })?;
        Profile::ReleaseWithMpi
    } else {
        Profile::Release
    };
    let mut bench = Command::new(built("bin", "bench", profile)?);
    bench.args(args.iter().filter(|arg| *arg != "--yes"));
    bench.envs(python.map(|python| ("BRISK_PYTHON", python)));
    bench.envs(burn.map(|burn| ("BRISK_BURN", burn)));
    finish(&mut bench)
}

/// The Python packages that the peers of a suite import.
fn packages(suite: &command_line::Suite) -> &'static [peers::Package] {
    match suite {
        command_line::Suite::Loader(_) => peers::LOADER_PACKAGES,
        command_line::Suite::Kernels(_) => peers::KERNELS_PACKAGES,
        command_line::Suite::Tabular(_) => peers::BOOSTING_PACKAGES,
        _ => peers::TRAINING_PACKAGES,
    }
}

fn cargo_bench(package: &str, smoke: &Smoke) -> Command {
    let mut bench = command("cargo bench --package");
    bench.arg(package).arg("--").args(smoke.smoke.then_some("--smoke"));
    bench
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn parsed(line: &str) -> Options {
        Line::try_parse_from(std::iter::once("bench").chain(line.split(' ')))
            .unwrap_or_else(|error| panic!("{line}: {error}"))
            .options
    }

    #[track_caller]
    fn check_error(line: &str, part: &str) {
        let error = Line::try_parse_from(std::iter::once("bench").chain(line.split(' '))).expect_err(line).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }

    #[test]
    fn peers_are_started_for_the_parts_that_have_them() {
        let check = |line: &str, expected| {
            let Suite::Own(suite) = parsed(line).suite else { panic!("{line}: not a suite of the program") };
            assert_eq!((suite.needs_python(), suite.needs_burn(), suite.needs_mpi()), expected, "{line}");
        };
        check("higgs --peers", (true, false, false));
        check("higgs", (false, false, false));
        check("loader --only import --peers", (true, false, false));
        check("kernels --peers", (true, true, false));
        check("kernels", (false, false, false));
        check("replicate --peers", (false, false, true));
        check("scaling --simulate --peers", (false, false, true));
        check("kernels --only burn --peers", (false, true, false));
        check("kernels --only replay --only conv --peers", (true, false, false));
    }

    #[test]
    fn consent_can_be_given_anywhere() {
        for line in ["--yes higgs --peers", "higgs --yes", "table --smoke --yes --peers"] {
            assert!(parsed(line).yes, "{line}");
        }
        assert!(!parsed("higgs --peers").yes, "consent is not given by --peers");
    }

    #[test]
    fn a_mistyped_word_is_an_error_with_a_suggestion() {
        check_error("hggs", "a similar subcommand exists: 'higgs'");
        check_error("loader --only import --smok", "a similar argument exists: '--smoke'");
        check_error("kernels --only twin", "a similar value exists: 'twins'");
        check_error("higgs --mb 3", "unexpected argument '--mb'");
        check_error("scaling --gbit 10", "--simulate");
    }
}
