//! Builds for another target: the profile and the standard library.

use std::path::Path;

use anyhow::{Result, bail};

use crate::packages::{self, Install};
use crate::shell::{command, output, succeeds};

/// The profile of tests without debug information, which would take gigabytes per target.
pub(super) const PROFILE: [&str; 2] = ["--config", "profile.dev.debug=false"];

/// Makes sure that `target` has a standard library, which rustup installs if it is missing.
pub(super) fn ensure(target: &str, install: Install) -> Result<()> {
    let sysroot = output(&mut command("rustc --print sysroot"))?;
    if Path::new(sysroot.trim()).join("lib/rustlib").join(target).join("lib").is_dir() {
        return Ok(());
    }
    let add = format!("rustup target add {target}");
    if !succeeds(&mut command("rustup --version")) {
        bail!(
            "the standard library of {target} is missing; install rustup (https://rustup.rs) and run `{add}`, or install it from the system's packages"
        );
    }
    if install == Install::Never {
        bail!("the standard library of {target} is missing; run: {add}");
    }
    eprintln!("the standard library of {target} is missing");
    packages::run_patiently(&mut [command(&add)])
}
