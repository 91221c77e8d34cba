//! `cargo xtask test`: everything that is checked before a change lands.

use std::env;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::metadata::{Package, packages};
use crate::packages::{Install, InstallOptions, run_patiently};
use crate::programs::{self, Profile, all_features};
use crate::shell::{self, command, run as must, succeeds};
use crate::stages::{self, Stage, Systems};
use crate::{cross, jobs, mpi, servers, tidy, vulkan};

const STAGES: &[Stage] = &[
    Stage {
        name: "adapter",
        about: "A Vulkan adapter exists; on Linux without one, Mesa's software driver is installed",
        systems: Systems::All,
        act: vulkan::ensure,
    },
    Stage {
        name: "mpi",
        about: "MPI exists, for tests between processes; without it, Open MPI and iproute2 are installed",
        systems: Systems::Linux,
        act: |install| mpi::ensure(install).and_then(|()| mpi::ensure_network(install)),
    },
    Stage {
        name: "servers",
        about: "nginx and rclone exist, for tests of tables on servers; without them, they are installed, rclone in target",
        systems: Systems::Linux,
        act: servers::ensure,
    },
    Stage {
        name: "jobs",
        about: "Slurm and the schemas of Kubernetes exist, for tests of job files; without them, they are installed, the latter in target",
        systems: Systems::Linux,
        act: jobs::ensure,
    },
    Stage { name: "fmt", about: "cargo fmt --all --check", systems: Systems::All, act: fmt },
    Stage {
        name: "clippy",
        about: "cargo clippy --workspace --all-targets --all-features -- -D warnings",
        systems: Systems::Linux,
        act: clippy,
    },
    Stage {
        name: "features",
        about: "cargo check of each published crate without features, and with each of its features on its own, and of \
                the workspace as `cargo test` builds it, without warnings",
        systems: Systems::All,
        act: |_| features(),
    },
    Stage {
        name: "cross",
        about: "cargo xtask cross check: the crates compile for Windows, macOS, Linux on aarch64, Android and WebAssembly",
        systems: Systems::Linux,
        act: cross::check,
    },
    Stage {
        name: "doc",
        about: "cargo doc --workspace --all-features --no-deps, with warnings denied",
        systems: Systems::Linux,
        act: |_| must(checked("cargo doc --workspace --no-deps").args(all_features()?).env("RUSTDOCFLAGS", "-D warnings")),
    },
    Stage {
        name: "tests",
        about: "cargo nextest run --workspace --all-features, or cargo test where nextest is not installed",
        systems: Systems::All,
        act: |_| tests(),
    },
    Stage {
        name: "doctests",
        about: "cargo test --workspace --all-features --doc",
        systems: Systems::All,
        act: |_| must(checked("cargo test --workspace --doc").args(all_features()?)),
    },
    Stage { name: "tidy", about: "cargo xtask tidy", systems: Systems::All, act: |_| tidied() },
    Stage {
        name: "conformance",
        about: "cargo xtask conformance on the CPU executor and on an adapter, in f32, f16 and bf16, and across 1 to 4 replicas",
        systems: Systems::All,
        act: |_| conformance(),
    },
];

/// Checks everything that must pass before a change lands; CI runs this command
///
/// Runs the stages in the order listed below, and stops at the first that fails.
///
/// Tests run with BRISK_TEST_GPU=require, BRISK_TEST_MPI=require and BRISK_TEST_SERVERS=require: a test that needs an adapter,
/// MPI, two hosts or a server fails without them instead of being skipped. Two hosts are network namespaces, which some
/// containers forbid; there, BRISK_TEST_MPI=auto skips those tests and says so. So do tests of rclone where it cannot be
/// downloaded, and those of job files where Slurm cannot be started, which needs root, or the schemas of Kubernetes cannot be
/// downloaded.
///
/// On macOS and Windows, stages that need Linux or find the same on any system are skipped and say so, features named `mpi` are
/// off, tests that need a server are skipped, and BRISK_TEST_GPU=auto is kept for a machine without an adapter. On Windows, the
/// tests of xtask itself are skipped.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Runs only this stage; can be given several times
    #[arg(long, value_name = "STAGE", value_parser = stage_names())]
    only: Vec<String>,
    #[command(flatten)]
    install: InstallOptions,
}

fn stage_names() -> PossibleValuesParser {
    let help = |stage: &Stage| match stage.systems {
        Systems::All => stage.about.to_owned(),
        Systems::Linux => format!("{} (only on Linux)", stage.about),
    };
    PossibleValuesParser::new(STAGES.iter().map(|stage| PossibleValue::new(stage.name).help(help(stage))))
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    if !LINUX {
        eprintln!("features named `{}` are off: replicas that are processes are tested on Linux", programs::MPI);
    }
    stages::run(STAGES, &options.only, env::consts::OS, options.install.get())?;
    Ok(ExitCode::SUCCESS)
}

/// Whether this is Linux, where an adapter and MPI can be installed.
const LINUX: bool = cfg!(target_os = "linux");

/// A command whose tests fail without an adapter, MPI or a server, instead of being skipped. The user can set BRISK_TEST_MPI to
/// `auto` where namespaces are forbidden, and BRISK_TEST_GPU where no adapter can be installed.
fn checked(line: &str) -> Command {
    let mut command = command(line);
    let is_set = |name| env::var_os(name).is_some();
    if LINUX || !is_set("BRISK_TEST_GPU") {
        command.env("BRISK_TEST_GPU", "require");
    }
    if !LINUX {
        command.env("BRISK_TEST_MPI", "off");
    } else if !is_set("BRISK_TEST_MPI") {
        command.env("BRISK_TEST_MPI", "require");
    }
    if LINUX {
        let wish = |is_there: bool| if is_there { "require" } else { "auto" };
        command.env("BRISK_TEST_SERVERS", wish(servers::has_rclone())).env("BRISK_TEST_JOBS", wish(jobs::are_found()));
    }
    command
}

fn fmt(install: Install) -> Result<()> {
    component("rustfmt", "cargo fmt --version", install)?;
    must(&mut command("cargo fmt --all --check")).context("`cargo fmt --all` formats the code")
}

fn clippy(install: Install) -> Result<()> {
    component("clippy", "cargo clippy --version", install)?;
    must(command("cargo clippy --workspace --all-targets").args(all_features()?).args(["--", "-D", "warnings"]))
}

/// Each published crate without features, and with each of its features on its own; then everything as `cargo test` builds it.
/// The other stages enable all features, which hides missing ones.
fn features() -> Result<()> {
    for Package { name, features, .. } in packages()?.iter().filter(|package| package.short_name().is_some()) {
        let features = features.iter().map(String::as_str).filter(|feature| LINUX || *feature != programs::MPI);
        for feature in std::iter::once("").chain(features) {
            let line = format!("cargo check --quiet --package {name} --no-default-features");
            shell::run_without_warnings(command(&line).args(["--features", feature]))
                .with_context(|| format!("{name} with only the feature `{feature}`"))?;
        }
    }
    shell::run_without_warnings(&mut command("cargo check --quiet --workspace --all-targets"))
        .context("the workspace with its default features")
}

fn tests() -> Result<()> {
    let (line, kinds) = if succeeds(&mut command("cargo nextest --version")) {
        ("cargo nextest run --workspace", &[][..])
    } else {
        // Not `--all-targets`, which runs the benches as well.
        ("cargo test --workspace", &["--lib", "--bins", "--tests", "--examples"][..])
    };
    let mut tests = checked(line);
    if cfg!(windows) {
        eprintln!("without the tests of xtask: Windows does not replace a program while it runs");
        tests.args(["--exclude", "xtask"]);
    }
    must(tests.args(all_features()?).args(kinds))
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
        run.args(["--device", "cpu", "--device", tested]).current_dir(shell::root());
        run
    };
    must(started().args(["--precision", "f32", "--precision", "f16", "--precision", "bf16"]))?;
    // The training cases, split across replicas: threads, then processes.
    must(started().args(["--replicas", "1", "--replicas", "2", "--replicas", "3", "--replicas", "4"]))?;
    if !LINUX {
        eprintln!("without replicas that are processes: they need MPI, which is tested on Linux");
        return Ok(());
    }
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
