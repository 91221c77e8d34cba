//! Linux on aarch64: cross-compiled with GCC, run with QEMU.

use std::env;
use std::process::Command;

use anyhow::{Result, anyhow, bail};

use super::{example, target};
use crate::packages::{self, Install, Packages};
use crate::shell::{command, succeeds, target_dir};

const TARGET: &str = "aarch64-unknown-linux-gnu";
const COMPILER: &str = "aarch64-linux-gnu-gcc";
const QEMU: &str = "qemu-aarch64";
/// The folder of the target's C library.
const LIBRARY: &str = "/usr/aarch64-linux-gnu";

const PACKAGES: Packages = Packages {
    provides: "GCC and a C library for aarch64, and QEMU",
    names: &[("apt-get", "gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user")],
};

/// How far the test AUC may be from that of this machine, whose vector instructions round sums in another order.
const AUC_TOLERANCE: f64 = 1e-3;

pub(super) fn run(install: Install) -> Result<()> {
    ensure(install)?;
    target::ensure(TARGET, install)?;
    let folder = target_dir().join("cross").join("aarch64");
    let here = example::run(Command::new(example::build(None, &[])?), &folder.join("here"))?;
    here.report("higgs on this machine");
    let mut program = Command::new(QEMU);
    program.args(["-L", LIBRARY]);
    program.arg(example::build(Some(TARGET), &[("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER)])?);
    let there = example::run(program, &folder.join("there"))?;
    there.report("higgs on aarch64 (QEMU)");
    if (here.test_auc - there.test_auc).abs() > AUC_TOLERANCE {
        bail!(
            "the test AUC is {} on this machine and {} on aarch64, which differ by more than {AUC_TOLERANCE}",
            here.test_auc,
            there.test_auc
        );
    }
    Ok(())
}

fn ensure(install: Install) -> Result<()> {
    if env::consts::OS != "linux" {
        bail!("aarch64 programs are run with QEMU's user mode, on Linux; this is {}", env::consts::OS);
    }
    let missing = || {
        let missing = [COMPILER, QEMU].iter().filter(|program| !succeeds(&mut command(&format!("{program} --version"))));
        missing.map(|program| format!("no {program}")).collect::<Vec<_>>().join(", ")
    };
    let parts = missing();
    if parts.is_empty() {
        return Ok(());
    }
    let ran = packages::install(&parts, &PACKAGES, install)?;
    match missing() {
        parts if parts.is_empty() => Ok(()),
        parts => Err(anyhow!("{parts}, even after `{ran}`")),
    }
}
