//! What users read: READMEs, guides and links.

use super::Finding;
use super::workspace::{File, Workspace};
use crate::metadata::Package;

/// The maximum number of lines of a crate's README.
const MAX_README_LINES: usize = 65;

/// Where a link to a file or folder of this repository begins.
const REPOSITORY: [&str; 2] = ["https://github.com/brisk-rs/brisk/blob/main/", "https://github.com/brisk-rs/brisk/tree/main/"];

fn published(workspace: &Workspace) -> impl Iterator<Item = &Package> {
    workspace.packages.iter().filter(|package| package.short_name().is_some())
}

pub(super) fn readmes_are_the_short_front_pages(workspace: &Workspace) -> Vec<Finding> {
    const INCLUDED: &str = "#![doc = include_str!(\"../README.md\")]";
    let mut findings = Vec::new();
    for Package { folder, .. } in published(workspace) {
        match workspace.file(&format!("{folder}/README.md")).map(|file| file.text.lines().count()) {
            None => findings.push(Finding::new(folder, 0, "has no README.md")),
            Some(n_lines) if n_lines > MAX_README_LINES => {
                let message = format!("has {n_lines} lines, more than {MAX_README_LINES}; move some to a guide in {folder}/docs");
                findings.push(Finding::new(format!("{folder}/README.md"), 0, message));
            }
            Some(_) => {}
        }
        let library = format!("{folder}/src/lib.rs");
        if !workspace.file(&library).is_some_and(|file| file.text.lines().any(|line| line.trim() == INCLUDED)) {
            let message = format!("does not include the README as its documentation; add `{INCLUDED}`");
            findings.push(Finding::new(library, 0, message));
        }
    }
    findings
}

pub(super) fn guides_are_in_the_documentation(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Package { folder, .. } in published(workspace) {
        let (docs, sources) = (format!("{folder}/docs/"), format!("{folder}/src/"));
        for guide in workspace.files.iter().filter_map(|file| file.path.strip_prefix(&docs)).filter(|name| name.ends_with(".md"))
        {
            let included = format!("include_str!(\"../docs/{guide}\")");
            if !workspace.rust_files(&sources).any(|file| file.text.contains(&included)) {
                let message =
                    format!("is not in the documentation; add a module with `#![doc = {included}]` to {sources}guide.rs");
                findings.push(Finding::new(docs.clone() + guide, 0, message));
            }
        }
    }
    findings
}

pub(super) fn links_lead_to_files(workspace: &Workspace) -> Vec<Finding> {
    let is_there = |path: &str| {
        let folder = format!("{}/", path.trim_end_matches('/'));
        workspace.files.iter().any(|file| file.path == path || file.path.starts_with(&folder))
    };
    let mut findings = Vec::new();
    for File { path, text } in &workspace.files {
        for (line, number) in text.lines().zip(1..) {
            let links = REPOSITORY.iter().flat_map(|begin| line.split(begin).skip(1));
            let targets =
                links.map(|link| link.split(|c: char| c.is_whitespace() || "#?)>]\"`,;…".contains(c)).next().unwrap_or(""));
            findings.extend(
                targets
                    .filter(|target| !target.is_empty() && !is_there(target))
                    .map(|target| Finding::new(path, number, format!("links to `{target}`, which is not in the repository"))),
            );
        }
    }
    findings
}

/// The files that the architecture page names between backticks, as paths from any folder down; `NAME` is to be filled in.
pub(super) fn architecture_names_files(workspace: &Workspace) -> Vec<Finding> {
    const PAGE: &str = "ARCHITECTURE.md";
    let is_there = |name: &str| {
        workspace
            .files
            .iter()
            .any(|file| file.path.strip_suffix(name).is_some_and(|folder| folder.is_empty() || folder.ends_with('/')))
    };
    let mut findings = Vec::new();
    for (line, number) in workspace.file(PAGE).map_or("", |file| &file.text).lines().zip(1..) {
        let names = line.split('`').skip(1).step_by(2).filter(|name| name.ends_with(".rs") && !name.contains("NAME"));
        let message = |name: &str| format!("names `{name}`, which is not in the repository");
        findings.extend(names.filter(|name| !is_there(name)).map(|name| Finding::new(PAGE, number, message(name))));
    }
    findings
}

/// A README is shown by crates.io and docs.rs, too, where relative links lead nowhere.
pub(super) fn links_of_readmes_are_absolute(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in published(workspace).filter_map(|package| workspace.file(&format!("{}/README.md", package.folder))) {
        for (line, number) in file.text.lines().zip(1..) {
            let inline = line.split("](").skip(1).map(|rest| rest.split(')').next().unwrap_or(rest));
            let named = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, target)| target.trim());
            let is_relative = |target: &&str| !["https://", "http://", "#"].iter().any(|begin| target.starts_with(begin));
            let message = |target| format!("links to `{target}`, which is relative; begin it with {}", REPOSITORY[0]);
            let relative = inline.chain(named).filter(is_relative);
            findings.extend(relative.map(|target| Finding::new(&file.path, number, message(target))));
        }
    }
    findings
}
