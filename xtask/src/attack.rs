//! `cargo xtask attack`: builds the example programs for release and attacks them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result};
use clap::Args;

use crate::mpi;
use crate::packages::InstallOptions;
use crate::programs::{executable, finish};
use crate::shell::{command, output};

#[path = "../../tests/src/bin/attack/command_line.rs"]
mod command_line;

/// Attacks the example programs and checks what they leave: kills, signals, full disks, damaged files, odd command lines
///
/// Prints a table of what was tried and found; the exit status is 1 if there was a loss, a panic, a hang or a wrong result. A
/// finding names the command that repeats it.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Attacks the programs in DIR instead of building those of the workspace
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    #[command(flatten)]
    attack: command_line::Options,
    #[command(flatten)]
    install: InstallOptions,
}

/// Builds the programs and passes on the command line `args`.
pub(crate) fn run(options: &Options, args: &[OsString]) -> Result<ExitCode> {
    let mut build = command("cargo build --workspace --release --message-format json-render-diagnostics --bin attack");
    build.args(["--features", "brisk-tests/all-formats"]);
    if options.programs.is_none() {
        build.args(command_line::PROGRAMS.iter().flat_map(|name| ["--example", name]));
        match mpi::ensure(options.install.get()) {
            Ok(()) => drop(build.args(["--features", "brisk-examples/mpi"])),
            Err(error) => eprintln!("ranks are left out: {error:#}"),
        }
    }
    let messages = output(&mut build)?;
    let path = |kind: &str, name: &str| {
        executable(&messages, kind, name).with_context(|| format!("cargo built `{name}` but printed no path of its executable"))
    };
    let mut attack = Command::new(path("bin", "attack")?);
    attack.args(args.iter().filter(|arg| *arg != "--no-install"));
    attack.arg("--xtask").arg(std::env::current_exe().context("cannot find the path of xtask itself")?);
    if options.programs.is_none() {
        let higgs = path("example", command_line::PROGRAMS[0])?;
        attack.arg("--programs").arg(higgs.parent().context("a program lies in a folder")?);
    }
    finish(&mut attack)
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

    #[track_caller]
    fn check_error(line: &str, part: &str) {
        let error = Line::try_parse_from(std::iter::once("attack").chain(line.split(' '))).expect_err(line).to_string();
        assert!(error.contains(part), "{line}: {error}");
    }

    #[test]
    fn wrong_options_are_refused_before_anything_is_built() {
        check_error("--only import-kill", "a similar value exists: 'import-kills'");
        check_error("--minute 3", "a similar argument exists: '--minutes'");
        check_error("--minutes 0", "above 0");
        check_error("--case 3", "--only");
        check_error("--cases 3 --minutes 2", "cannot be used with");
    }
}
