//! `cargo xtask conformance`: builds the conformance runner and passes the command line on to it.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::programs::{Profile, built, finish};

#[path = "../../tests/conformance/src/command_line.rs"]
mod command_line;

pub(crate) use command_line::{CasePrecision, CommandLine as Options};

pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    finish(Command::new(built("bin", "conformance", Profile::Dev)?).args(args))
}
