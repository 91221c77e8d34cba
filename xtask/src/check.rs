//! `cargo xtask test`: everything that is checked before a change lands.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::metadata::{Package, packages};
use crate::packages::{Install, InstallOptions, run_patiently};
use crate::programs::{self, Profile};
use crate::shell::{self, command, run as must, succeeds};
use crate::stages::{self, Stage};
use crate::{cross, mpi, tidy, vulkan};

const STAGES: &[Stage] = &[
    Stage {
        name: "adapter",
        about: "A Vulkan adapter exists; on Linux without one, Mesa's software driver is installed",
        act: vulkan::ensure,
    },
    Stage {
        name: "mpi",
        about: "MPI exists, for tests between processes; on Linux without it, Open MPI and iproute2 are installed",
        act: |install| mpi::ensure(install).and_then(|()| mpi::ensure_network(install)),
    },
    Stage { name: "fmt", about: "cargo fmt --all --check", act: fmt },
    Stage { name: "clippy", about: "cargo clippy --workspace --all-targets --all-features -- -D warnings", act: clippy },
    Stage {
        name: "features",
        about: "cargo check of each published crate without features, and with each of its features on its own, without warnings",
        act: |_| features(),
    },
    Stage {
        name: "cross",
        about: "cargo xtask cross check: the crates compile for Windows, macOS, Linux on aarch64, Android and WebAssembly",
        act: cross::check,
    },
    Stage {
        name: "doc",
        about: "cargo doc --workspace --all-features --no-deps, with warnings denied",
        act: |_| must(checked("cargo doc --workspace --all-features --no-deps").env("RUSTDOCFLAGS", "-D warnings")),
    },
    Stage {
        name: "tests",
        about: "cargo nextest run --workspace --all-features, or cargo test where nextest is not installed",
        act: |_| tests(),
    },
    Stage {
        name: "doctests",
        about: "cargo test --workspace --all-features --doc",
        act: |_| must(&mut checked("cargo test --workspace --all-features --doc")),
    },
    Stage { name: "tidy", about: "cargo xtask tidy", act: |_| tidied() },
    Stage {
        name: "conformance",
        about: "cargo xtask conformance on the CPU executor and on an adapter, in f32, f16 and bf16, and across 1 to 4 replicas",
        act: |_| conformance(),
    },
];

/// Checks everything that must pass before a change lands; CI runs this command
///
/// Runs the stages in the order listed below, and stops at the first that fails.
///
/// Tests run with BRISK_TEST_GPU=require and BRISK_TEST_MPI=require: a test that needs an adapter, MPI or two hosts fails without
/// them instead of being skipped. Two hosts are network namespaces, which some containers forbid; there, BRISK_TEST_MPI=auto
/// skips those tests and says so.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs only this stage; can be given several times
    #[arg(long, value_name = "STAGE", value_parser = stage_names())]
    only: Vec<String>,
    #[command(flatten)]
    install: InstallOptions,
}

fn stage_names() -> PossibleValuesParser {
    PossibleValuesParser::new(STAGES.iter().map(|stage| PossibleValue::new(stage.name).help(stage.about)))
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    stages::run(STAGES, &options.only, options.install.get())?;
    Ok(ExitCode::SUCCESS)
}

/// A command whose tests fail without an adapter or MPI, instead of being skipped. The user can set BRISK_TEST_MPI to `auto`
/// where namespaces are forbidden.
fn checked(line: &str) -> Command {
    let mut command = command(line);
    command.env("BRISK_TEST_GPU", "require");
    if std::env::var_os("BRISK_TEST_MPI").is_none() {
        command.env("BRISK_TEST_MPI", "require");
    }
    command
}

fn fmt(install: Install) -> Result<()> {
    component("rustfmt", "cargo fmt --version", install)?;
    must(&mut command("cargo fmt --all --check")).context("`cargo fmt --all` formats the code")
}

fn clippy(install: Install) -> Result<()> {
    component("clippy", "cargo clippy --version", install)?;
    must(&mut command("cargo clippy --workspace --all-targets --all-features -- -D warnings"))
}

/// Each published crate without features, and with each of its features on its own. The other stages enable all features, which
/// hides missing ones.
fn features() -> Result<()> {
    for Package { name, features, .. } in packages()?.iter().filter(|package| package.short_name().is_some()) {
        for feature in std::iter::once("").chain(features.iter().map(String::as_str)) {
            let line = format!("cargo check --quiet --package {name} --no-default-features");
            shell::run_without_warnings(command(&line).args(["--features", feature]))
                .with_context(|| format!("{name} with only the feature `{feature}`"))?;
        }
    }
    Ok(())
}

fn tests() -> Result<()> {
    if succeeds(&mut command("cargo nextest --version")) {
        must(&mut checked("cargo nextest run --workspace --all-features"))
    } else {
        // Not `--all-targets`, which runs the benches as well.
        must(&mut checked("cargo test --workspace --all-features --lib --bins --tests --examples"))
    }
}

fn tidied() -> Result<()> {
    let findings = tidy::findings()?;
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    match findings.len() {
        0 => Ok(()),
        n => bail!("`cargo xtask tidy` has {n} findings, listed above"),
    }
}

fn conformance() -> Result<()> {
    let program = programs::built("bin", "conformance", Profile::Dev)?;
    let tested = vulkan::tested_device()?;
    let started = || {
        let mut run = Command::new(&program);
        run.args(["--device", "cpu", "--device", tested]).env("BRISK_TEST_GPU", "require").current_dir(shell::root());
        run
    };
    must(started().args(["--precision", "f32", "--precision", "f16", "--precision", "bf16"]))?;
    // The training cases, split across replicas: threads, then processes.
    must(started().args(["--replicas", "1", "--replicas", "2", "--replicas", "3", "--replicas", "4"]))?;
    let launch = programs::built("example", "launch", Profile::Dev)?;
    (1..=4).try_for_each(|n_ranks| {
        must(Command::new(&launch).args(["-n", &n_ranks.to_string()]).arg(&program).args(["--device", "cpu"]))
    })
}

/// Installs a component of the toolchain if it is missing.
fn component(name: &str, probe: &str, install: Install) -> Result<()> {
    if succeeds(&mut command(probe)) {
        return Ok(());
    }
    let add = format!("rustup component add {name}");
    if install == Install::Allowed && succeeds(&mut command("rustup --version")) {
        eprintln!("{name} is missing");
        return run_patiently(&mut [command(&add)]);
    }
    bail!("{name} is missing; install it with `{add}` or from the system's packages")
}
