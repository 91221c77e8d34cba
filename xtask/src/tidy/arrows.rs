//! Which crates may depend on which.

use super::Finding;
use super::source::code_lines;
use super::workspace::Workspace;

/// The brisk crates that each crate may depend on, in tests and build scripts too; `None` means all. ARCHITECTURE.md has the
/// diagram.
const ARROWS: &[(&str, Option<&[&str]>)] = &[
    ("kernels", Some(&[])),
    ("loader", Some(&[])),
    ("replicate", Some(&[])),
    ("metrics", Some(&[])),
    ("atomic-file", Some(&[])),
    // The loader only for the trait `RowSource`, which tables implement.
    ("table", Some(&["loader", "atomic-file"])),
    ("program", Some(&["kernels", "atomic-file"])),
    // The loader only for the trait `RowSource`, by which images are read.
    ("report", Some(&["metrics", "loader", "atomic-file"])),
    ("tensor", Some(&["program", "kernels"])),
    ("nn", Some(&["tensor", "program", "kernels"])),
    ("vision", Some(&["nn", "tensor", "program", "kernels"])),
    // Tables only for their folders at URLs, with the feature `remote`.
    ("train", Some(&["nn", "tensor", "program", "kernels", "loader", "replicate", "metrics", "report", "table", "atomic-file"])),
    ("tabular", Some(&["train", "nn", "table", "loader", "atomic-file"])),
    // It re-exports the others.
    ("brisk", None),
];

/// The crates that use wgpu directly; the others use it through them.
const NAME_WGPU: [&str; 2] = ["kernels", "program"];

pub(super) fn point_down(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let manifest = format!("{}/Cargo.toml", package.folder);
        let known = package.dependencies.iter().filter_map(|name| name.strip_prefix("brisk-"));
        if package.name == "xtask" {
            findings.extend(known.map(|name| {
                Finding::new(
                    &manifest,
                    0,
                    format!("xtask depends on brisk-{name}; it must build in seconds: start a program that depends on the crate instead"),
                )
            }));
            continue;
        }
        let Some(short) = package.short_name() else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == short) else {
            findings.push(Finding::new(
                &manifest,
                0,
                format!("`{short}` is missing in the table of dependencies (xtask/src/tidy/arrows.rs)"),
            ));
            continue;
        };
        let Some(allowed) = allowed else { continue };
        for name in known.filter(|name| !allowed.contains(name)) {
            let may = if allowed.is_empty() {
                "not depend on other brisk crates".to_owned()
            } else {
                format!("only depend on {}", allowed.join(", "))
            };
            findings.push(Finding::new(&manifest, 0, format!("`{short}` depends on `{name}`; it may {may}")));
        }
    }
    findings
}

pub(super) fn wgpu_is_named_below(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let outside = package.short_name().is_some_and(|short| !NAME_WGPU.contains(&short)) || package.name == "xtask";
        if !outside {
            continue;
        }
        let says = |what: &str| format!("`{}` {what} wgpu; only {} do", package.name, NAME_WGPU.join(" and "));
        if package.dependencies.iter().any(|name| name == "wgpu" || name.starts_with("wgpu-")) {
            findings.push(Finding::new(format!("{}/Cargo.toml", package.folder), 0, says("depends on")));
        }
        for file in workspace.rust_files(&format!("{}/src/", package.folder)) {
            let named = code_lines(&file.text).into_iter().filter(|(_, code)| code.contains("wgpu::"));
            findings.extend(named.map(|(line, _)| Finding::new(&file.path, line, says("names"))));
        }
    }
    findings
}
