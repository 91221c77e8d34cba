//! `cargo xtask cross`: checks that the crates compile for other systems, and runs them on emulated ones.

mod aarch64;
mod check;
mod example;
mod target;
mod windows;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::packages::InstallOptions;

pub(crate) use check::check;

/// Checks that the crates compile for other systems, or runs them on an emulated one
///
/// Standard libraries of other targets are installed by rustup; compilers and emulators by the package manager of a Debian or
/// Ubuntu system.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What to do
    #[arg(default_value = "check")]
    what: What,
    #[command(flatten)]
    install: InstallOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// Runs `cargo check` for Windows, macOS, Linux on aarch64, Android and WebAssembly
    Check,
    /// Builds for Windows with MinGW, runs the tests of brisk-table, brisk-loader and brisk-train with Wine, and compares the
    /// results of the example `higgs` with those of this machine, bit for bit
    Windows,
    /// Builds for Linux on aarch64, runs the example `higgs` with QEMU, and compares its test AUC with that of this machine
    Aarch64,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let install = options.install.get();
    match options.what {
        What::Check => check(install)?,
        What::Windows => windows::run(install)?,
        What::Aarch64 => aarch64::run(install)?,
    }
    Ok(ExitCode::SUCCESS)
}
