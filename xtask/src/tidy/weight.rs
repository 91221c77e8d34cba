//! How many packages a crate adds to the build of its dependants.

use std::collections::BTreeSet;

use super::Finding;
use super::workspace::Workspace;

/// A crate must need no more packages than this, including itself, according to `cargo tree -e normal` with its default features
/// and these for [`TARGET`], on whichever system that is counted. Dependencies of build scripts are not counted.
pub(super) const LIMITS: [(&str, &str, usize); 4] =
    [("brisk-table", "", 26), ("brisk-table", "http", 130), ("brisk-table", "s3", 145), ("brisk-kernels", "", 74)];

/// The target that packages are counted for.
pub(super) const TARGET: &str = "x86_64-unknown-linux-gnu";

pub(super) fn stays_low(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for ((name, features, limit), packages) in LIMITS.into_iter().zip(&workspace.trees) {
        if packages.len() > limit {
            let with = if features.is_empty() { String::new() } else { format!(" with the feature `{features}`") };
            let list = packages.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            findings.push(Finding::new(
                name,
                0,
                format!("takes {} packages to build{with}, expected at most {limit}: {list}", packages.len()),
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
