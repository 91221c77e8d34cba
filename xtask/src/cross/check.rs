//! `cargo check` for systems that tests do not run on.

use std::time::Instant;

use anyhow::{Context as _, Result};

use super::target;
use crate::metadata::packages;
use crate::packages::Install;
use crate::shell::{command, run_without_warnings};

/// A system to check for.
struct System {
    name: &'static str,
    target: &'static str,
    /// The crates that are checked, with the brisk crates that they depend on; all published crates and the examples if empty.
    crates: &'static [&'static str],
}

const SYSTEMS: [System; 5] = [
    System { name: "Windows", target: "x86_64-pc-windows-gnu", crates: &[] },
    System { name: "macOS", target: "aarch64-apple-darwin", crates: &[] },
    // The crates with code for one processor or with system calls, and what they depend on.
    System { name: "Linux", target: "aarch64-unknown-linux-gnu", crates: &["brisk-program", "brisk-replicate", "brisk-table"] },
    System { name: "Android", target: "aarch64-linux-android", crates: &["brisk-program", "brisk-replicate", "brisk-table"] },
    // Without the crates that need files and signals: brisk-table and brisk-train.
    System { name: "WebAssembly", target: "wasm32-unknown-unknown", crates: &["brisk-loader", "brisk-nn", "brisk-replicate"] },
];

pub(crate) fn check(install: Install) -> Result<()> {
    for system in &SYSTEMS {
        target::ensure(system.target, install)?;
    }
    let published: Vec<_> = packages()?.into_iter().filter(|package| package.short_name().is_some()).collect();
    for System { name, target, crates } in &SYSTEMS {
        let begin = Instant::now();
        let mut check = command("cargo check --quiet --target");
        check.arg(target);
        if crates.is_empty() {
            check.args(published.iter().flat_map(|package| ["--package", &package.name]));
            check.args(["--package", "brisk-examples", "--package", "brisk-vision-examples", "--lib", "--examples"]);
        } else {
            check.args(crates.iter().flat_map(|name| ["--package", name])).arg("--lib");
        }
        run_without_warnings(&mut check).with_context(|| format!("the crates do not compile without warnings for {name}"))?;
        eprintln!("{name} ({target}): ok, {:.1} s", begin.elapsed().as_secs_f64());
    }
    Ok(())
}
