//! Finds, or installs, nginx, which serves a table in a test.

use anyhow::{Result, bail};

use crate::packages::{self, Install, Packages};
use crate::shell::{command, succeeds};

const PACKAGES: Packages = Packages {
    provides: "nginx",
    names: &[("apt-get", "nginx-light"), ("dnf", "nginx"), ("pacman", "nginx"), ("zypper", "nginx"), ("apk", "nginx")],
};

pub(crate) fn ensure(install: Install) -> Result<()> {
    let is_there = || succeeds(&mut command("nginx -v"));
    if is_there() {
        eprintln!("nginx found");
        return Ok(());
    }
    let ran = packages::install("no nginx", &PACKAGES, install)?;
    if !is_there() {
        bail!("there is still no nginx in the PATH after `{ran}`");
    }
    Ok(())
}
