//! `cargo xtask test`: everything that is checked before a change lands.

use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::bins::{self, Profile};
use crate::shell::{self, command, output, run as must, succeeds};
use crate::stages::{self, Install, Options, Stage};
use crate::{mpi, tidy, vulkan};

const STAGES: &[Stage] = &[
    Stage { name: "adapter", act: |options| vulkan::ensure(options.install) },
    Stage { name: "mpi", act: |options| mpi::ensure(options.install).and_then(|()| mpi::ensure_network(options.install)) },
    Stage { name: "fmt", act: fmt },
    Stage { name: "clippy", act: clippy },
    Stage { name: "features", act: |_| features() },
    Stage {
        name: "doc",
        act: |_| must(checked("cargo doc --workspace --all-features --no-deps").env("RUSTDOCFLAGS", "-D warnings")),
    },
    Stage { name: "tests", act: tests },
    Stage { name: "doctests", act: |_| must(&mut checked("cargo test --workspace --all-features --doc")) },
    Stage { name: "tidy", act: |_| tidied() },
    Stage { name: "conformance", act: |_| conformance() },
];

pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    Ok(stages::run(STAGES, &Options::parse(args, STAGES)?))
}

/// A command in whose tests a missing adapter or MPI is a failure, not a skip. A machine that allows no namespaces has no two hosts: there
/// BRISK_TEST_MPI may be set to `auto` before.
fn checked(line: &str) -> Command {
    let mut command = command(line);
    command.env("BRISK_TEST_GPU", "require");
    if std::env::var_os("BRISK_TEST_MPI").is_none() {
        command.env("BRISK_TEST_MPI", "require");
    }
    command
}

fn fmt(options: &Options) -> Result<()> {
    component("rustfmt", "cargo fmt --version", options.install)?;
    must(&mut command("cargo fmt --all --check")).context("`cargo fmt --all` mends it")
}

fn clippy(options: &Options) -> Result<()> {
    component("clippy", "cargo clippy --version", options.install)?;
    must(&mut command("cargo clippy --workspace --all-targets --all-features -- -D warnings"))
}

/// Each published crate without features, and with each of its own alone: what is missing there, the other stages, which have all, do not see.
fn features() -> Result<()> {
    let metadata: Value = serde_json::from_str(&output(&mut command("cargo metadata --format-version 1 --no-deps"))?)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    for package in packages.filter(|package| package["publish"].is_null()) {
        let (Some(name), Some(features)) = (package["name"].as_str(), package["features"].as_object()) else {
            bail!("cargo's metadata of a package has no name or no features");
        };
        for feature in std::iter::once("").chain(features.keys().map(String::as_str)) {
            let line = format!("cargo check --quiet --package {name} --no-default-features");
            must(command(&line).args(["--features", feature]))
                .with_context(|| format!("{name} with the feature `{feature}` alone"))?;
        }
    }
    Ok(())
}

fn tests(_: &Options) -> Result<()> {
    if succeeds(&mut command("cargo nextest --version")) {
        must(&mut checked("cargo nextest run --workspace --all-features"))
    } else {
        // Not `--all-targets`: that would run the benches as well.
        must(&mut checked("cargo test --workspace --all-features --lib --bins --tests --examples"))
    }
}

fn tidied() -> Result<()> {
    let findings = tidy::findings()?;
    findings.iter().for_each(|finding| eprintln!("{finding}"));
    match findings.len() {
        0 => Ok(()),
        n => bail!("`cargo xtask tidy` has {n} things to say"),
    }
}

fn conformance() -> Result<()> {
    let program = bins::built("conformance", Profile::Dev)?;
    let tested = vulkan::tested_device()?;
    let started = || {
        let mut run = Command::new(&program);
        run.args(["--device", "cpu", "--device", tested]).env("BRISK_TEST_GPU", "require").current_dir(shell::root());
        run
    };
    must(started().args(["--precision", "f32", "--precision", "f16", "--precision", "bf16"]))?;
    // The training runs among them, split over replicas: threads, then processes.
    must(started().args(["--replicas", "1", "--replicas", "2", "--replicas", "3", "--replicas", "4"]))?;
    for n_ranks in ["1", "2", "3", "4"] {
        let path = program.to_str().context("the target folder has a name that is not UTF-8")?;
        let args = ["-n", n_ranks, "--", "program", path, "--device", "cpu"].map(String::from);
        if mpi::run(&args)? != ExitCode::SUCCESS {
            bail!("training runs over {n_ranks} ranks; see above");
        }
    }
    Ok(())
}

/// A part of the toolchain that rustup may have left out.
fn component(name: &str, probe: &str, install: Install) -> Result<()> {
    if succeeds(&mut command(probe)) {
        return Ok(());
    }
    let add = format!("rustup component add {name}");
    if install == Install::Allowed && succeeds(&mut command("rustup --version")) {
        eprintln!("{name} is missing; running `{add}`");
        return must(&mut command(&add));
    }
    bail!("{name} is missing; `{add}`, or the system's package of it, installs it")
}
