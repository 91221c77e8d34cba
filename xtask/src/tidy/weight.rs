//! How many packages a crate adds to the build of its dependants.

use std::collections::BTreeSet;

use super::Finding;
use super::workspace::Workspace;

/// A crate must need fewer packages than this, including itself, according to `cargo tree -e normal` with default features for
/// [`TARGET`], on whichever system that is counted. Dependencies of build scripts are not counted.
pub(super) const LIMITS: [(&str, usize); 2] = [("brisk-table", 30), ("brisk-kernels", 75)];

/// The target that packages are counted for.
pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(super) fn stays_low(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, limit) in LIMITS {
        let Some((_, packages)) = workspace.trees.iter().find(|(tree, _)| tree == name) else { continue };
        if packages.len() >= limit {
            let list = packages.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            findings.push(Finding::new(
                name,
                0,
                format!("takes {} packages to build, expected fewer than {limit}: {list}", packages.len()),
            ));
        }
    }
    findings
}

/// The packages in the output of `cargo tree --prefix none`: one line per package, `name v1.2.3` and notes, with repetitions.
pub(super) fn unique_packages(printed: &str) -> BTreeSet<String> {
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    printed.lines().filter_map(package).collect()
}
