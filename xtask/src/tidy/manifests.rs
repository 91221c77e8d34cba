//! The manifest of a crate, of which crates.io and docs.rs show parts.

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
        if package.repository.is_empty() {
            says("has no repository; add `repository.workspace = true`");
        }
        // The limits of crates.io.
        if !(1..=5).contains(&package.keywords.len()) || package.keywords.iter().any(|keyword| keyword.len() > 20) {
            says("has no keywords, or not as crates.io takes them; write 1 to 5, of at most 20 characters each");
        }
        if !(1..=5).contains(&package.categories.len()) {
            says("has no categories, or more than crates.io takes; write 1 to 5 of https://crates.io/category_slugs");
        }
        if !package.has_docs_settings {
            says("does not say how docs.rs builds it; add `[package.metadata.docs.rs]`");
        }
        let short = package.short_name().unwrap_or_default();
        if short != "brisk" && package.name != format!("brisk-{short}") {
            says("is not named after its folder");
        }
    }
    findings
}
