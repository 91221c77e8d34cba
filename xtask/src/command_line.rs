//! The command line of `cargo xtask`: one variant per command, whose options are declared in the module that runs it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

use crate::{attack, bench, chart, check, conformance, cross, fetch, fuzz_tensors, records, shell, tidy, wgsl, with_candle};

/// All automation of the workspace
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 120)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(visible_alias = "check")]
    Test(check::Options),
    /// Checks rules of the workspace that neither the compiler nor clippy knows
    ///
    /// Each line of output is a place and what is wrong there. The rules are in xtask/src/tidy.
    Tidy,
    Conformance(conformance::Options),
    FuzzTensors(fuzz_tensors::Options),
    Bench(bench::Options),
    Chart(chart::Options),
    /// Writes benches/README.md from the records of all machines in benches/record
    Records,
    Attack(attack::Options),
    Cross(cross::Options),
    Fetch(fetch::Options),
    Wgsl(wgsl::Options),
    WithCandle(with_candle::Options),
    /// Prints the completions of a shell
    ///
    /// They complete a command named `xtask`, which can be a shell function: `xtask() { cargo xtask "$@"; }`. In bash, load them
    /// with `source <(cargo xtask completions bash)`.
    Completions {
        /// The shell to print completions for
        shell: Shell,
    },
}

impl CommandLine {
    /// Runs the command; `args` are the words after its name, for commands that pass them on to another program.
    pub(crate) fn run(self, args: &[OsString]) -> Result<ExitCode> {
        match self.command {
            Command::Test(options) => check::run(&options),
            Command::Tidy => tidy::run(),
            Command::Conformance(_) => conformance::run(args),
            Command::FuzzTensors(options) => fuzz_tensors::run(&options, args),
            Command::Bench(options) => bench::run(&options),
            Command::Chart(options) => chart::run(&options),
            Command::Records => records::run(),
            Command::Attack(options) => attack::run(&options, args),
            Command::Cross(options) => cross::run(&options),
            Command::Fetch(options) => fetch::run(&options),
            Command::Wgsl(options) => wgsl::run(&options),
            Command::WithCandle(options) => with_candle::run(&options),
            Command::Completions { shell } => completions(shell),
        }
    }
}

fn completions(shell: Shell) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "xtask", &mut script);
    shell::print(&script)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definition_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn completions_are_generated_for_every_shell() {
        for shell in clap::ValueEnum::value_variants() {
            let mut script = Vec::new();
            clap_complete::generate::<Shell, _>(*shell, &mut CommandLine::command(), "xtask", &mut script);
            let script = String::from_utf8(script).expect("completions are text");
            assert!(script.contains("xtask") && script.contains("only-download"), "{shell}: {script}");
        }
    }
}
