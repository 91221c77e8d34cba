//! `cargo xtask fuzz-tensors`: builds the conformance runner, which also runs random programs, and passes the command line on to
//! it.

use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::conformance::CasePrecision;
use crate::peers::{self, Consent};
use crate::programs::{Profile, built, finish};

#[path = "../../tests/conformance/src/fuzz/command_line.rs"]
mod command_line;

pub(crate) use command_line::CommandLine as Options;

pub(crate) fn run(options: &Options, args: &[OsString]) -> Result<ExitCode> {
    let python =
        options.peers.then(|| peers::python("torch", if options.yes { Consent::Given } else { Consent::Missing })).transpose()?;
    let mut fuzz = Command::new(built("bin", "conformance", Profile::Dev)?);
    fuzz.arg("fuzz-tensors").args(args);
    if let Some(python) = python {
        fuzz.env("BRISK_PYTHON", python);
    }
    finish(&mut fuzz)
}
