//! The manifest of a crate.

use super::Finding;
use super::workspace::Workspace;

pub(super) fn are_complete(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        let mut says = |message: &str| findings.push(Finding::new(format!("{}/Cargo.toml", package.folder), 0, message));
        if package.description.is_empty() || package.description.starts_with('(') {
            says("has no description; write one sentence on what it makes faster");
        }
        if package.license.is_empty() {
            says("has no licence; add `license.workspace = true`");
        }
        let short = package.short_name().unwrap_or_default();
        if short != "brisk" && package.name != format!("brisk-{short}") {
            says("is not named after its folder");
        }
    }
    findings
}
