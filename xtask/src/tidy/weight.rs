//! How many packages a crate costs whoever depends on it.

use std::collections::BTreeSet;

use super::Finding;
use super::workspace::Workspace;

/// Fewer than so many packages, itself among them, by `cargo tree -e normal` on this machine with default features: what a dependant links or
/// expands. Helpers of build scripts are not counted.
pub(super) const LIMITS: [(&str, usize); 2] = [("brisk-table", 30), ("brisk-kernels", 75)];

pub(super) fn stays_low(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (name, limit) in LIMITS {
        let Some((_, packages)) = workspace.trees.iter().find(|(tree, _)| tree == name) else { continue };
        if packages.len() >= limit {
            let list = packages.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            findings.push(Finding::new(
                name,
                0,
                format!("takes {} packages to build, fewer than {limit} are promised: {list}", packages.len()),
            ));
        }
    }
    findings
}

/// The packages that `cargo tree --prefix none` printed: a line each, `name v1.2.3` and notes, some of them twice.
pub(super) fn unique_packages(printed: &str) -> BTreeSet<String> {
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    printed.lines().filter_map(package).collect()
}
