//! The manifest and the README of a crate, which users see first.

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

pub(super) fn readme_is_the_crate_docs(workspace: &Workspace) -> Vec<Finding> {
    const INCLUDED: &str = "#![doc = include_str!(\"../README.md\")]";
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        if workspace.file(&format!("{}/README.md", package.folder)).is_none() {
            findings.push(Finding::new(&package.folder, 0, "has no README.md"));
        }
        let library = format!("{}/src/lib.rs", package.folder);
        if !workspace.file(&library).is_some_and(|file| file.text.lines().any(|line| line.trim() == INCLUDED)) {
            findings.push(Finding::new(
                library,
                0,
                format!("does not include the README as its documentation; add `{INCLUDED}`"),
            ));
        }
    }
    findings
}
