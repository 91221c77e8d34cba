//! `cargo xtask with-candle`: the example that is a separate package.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::programs::finish;
use crate::shell::{command, root, run as must, target_dir};

/// Builds, tests and runs examples/with_candle, a package outside the workspace
///
/// It is built for release in target/with_candle. The first build downloads candle and takes about six minutes of one core, so
/// `cargo xtask test` leaves it out.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Options of the example [default: --smoke]
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    let cargo = |verb: &str| {
        let mut cargo = command(&format!("cargo {verb} --release"));
        cargo.arg("--manifest-path").arg(root().join("examples/with_candle/Cargo.toml"));
        cargo.arg("--target-dir").arg(target_dir().join("with_candle"));
        cargo
    };
    must(&mut cargo("test"))?;
    let smoke = ["--smoke".into()];
    finish(cargo("run").arg("--").args(if options.args.is_empty() { &smoke } else { options.args.as_slice() }))
}
