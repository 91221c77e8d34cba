//! `cargo xtask wgsl`: the WGSL modules of the kernels, as composed and as translated for the backends of wgpu.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;

use crate::programs::finish;
use crate::shell::command;

/// Prints the WGSL modules of the kernels, or writes every pipeline in the languages of the backends
///
/// A module is a list of parts, each of which is printed under its name. Modules that differ only in element types, activations
/// or epilogues are printed one after another.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Options {
    /// Prints the modules whose label contains NAME, such as `matmul.tiled`
    name: Option<String>,
    /// Writes every pipeline into FOLDER as WGSL, SPIR-V, HLSL and MSL, with a table of them
    #[arg(long, value_name = "FOLDER")]
    dump: Option<PathBuf>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let mut cargo = command("cargo run --quiet --package brisk-kernels --all-features --example wgsl --");
    if let Some(folder) = &options.dump {
        cargo.arg("--dump").arg(std::path::absolute(folder).context("a folder to write to")?);
    }
    finish(cargo.args(&options.name))
}
