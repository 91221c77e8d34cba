//! All automation of the workspace. `cargo xtask --help` is the documentation.
#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, reason = "a command-line program reports on standard error")]

mod attack;
mod bench;
mod chart;
mod check;
mod command_line;
mod conformance;
mod cross;
mod fetch;
mod fuzz_tensors;
mod jobs;
mod metadata;
mod mpi;
mod packages;
mod peers;
mod programs;
mod records;
mod servers;
mod shell;
mod stages;
mod tidy;
mod vulkan;
mod wgsl;
mod with_candle;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser as _;

use command_line::CommandLine;

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match CommandLine::parse_from(&args).run(args.get(2..).unwrap_or_default()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
