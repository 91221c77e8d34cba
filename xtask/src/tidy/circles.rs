//! Imports between the modules of a crate, and between its files, run one way: they form no circle.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Finding;
use super::imports::imports;
use super::kernels::is_body;
use super::rooms::{imported, modules};
use super::workspace::Workspace;

/// For each module or file, those that it imports from, and the first place where it does.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// Imports of one file from another that are part of circles, and why.
const OF_CIRCLES: &[[&str; 2]] = &[
    // The tape of a graph keeps operations, and operations record into the graph.
    ["crates/tensor/src/graph/node.rs", "crates/tensor/src/graph/operation.rs"],
];

/// Modules are those that a crate's root declares; a file belongs to the one whose folder it is in. Tests may import from all.
pub(super) fn modules_form_none(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        let root = format!("{}/src/lib.rs", package.folder);
        let modules = workspace.file(&root).map_or_else(BTreeSet::new, |file| modules(&file.text));
        let arrows = arrows(workspace, &format!("{}/src/", package.folder), &modules);
        findings.extend(described(&arrows).map(|path| Finding::new(&root, 0, format!("modules form a circle: {path}"))));
    }
    findings
}

/// The twin of a kernel, and its dispatches where they are apart, are bodies of it and may import it.
pub(super) fn files_form_none(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        let sources = format!("{}/src/", package.folder);
        let imports = imports(workspace, &sources);
        let mut unused: Vec<_> =
            OF_CIRCLES.iter().filter(|[from, _]| from.starts_with(&sources) && workspace.file(from).is_some()).collect();
        let mut arrows = Arrows::new();
        for import in &imports {
            let (from, to) = (import.from.path.as_str(), import.to.path.as_str());
            unused.retain(|known| **known != [from, to]);
            if !OF_CIRCLES.contains(&[from, to]) && !is_body(workspace, from, to) {
                let place = || format!("`{}`, line {}", import.item, import.line);
                arrows.entry(from).or_default().entry(to).or_insert_with(place);
            }
        }
        let root = format!("{sources}lib.rs");
        findings.extend(described(&arrows).map(|path| Finding::new(&root, 0, format!("files form a circle: {path}"))));
        findings.extend(unused.into_iter().map(|[from, to]| {
            Finding::new(*from, 0, format!("imports nothing from {to}; take it off the list (xtask/src/tidy/circles.rs)"))
        }));
    }
    findings
}

fn arrows<'a>(workspace: &Workspace, sources: &str, modules: &'a BTreeSet<String>) -> Arrows<'a> {
    let mut arrows = Arrows::new();
    for file in workspace.rust_files(sources) {
        let path = file.path[sources.len()..].trim_end_matches(".rs").trim_end_matches("/mod");
        let parts: Vec<&str> = path.split('/').collect();
        let Some(own) = modules.get(parts[0]).filter(|_| !parts.contains(&"tests")) else { continue };
        let to_root = "super::".repeat(parts.len());
        for (line, name) in imported(&file.text, "crate::").into_iter().chain(imported(&file.text, &to_root)) {
            if let Some(other) = modules.get(&name).filter(|other| *other != own) {
                let place = || format!("{}:{line}", file.path);
                arrows.entry(own.as_str()).or_default().entry(other.as_str()).or_insert_with(place);
            }
        }
    }
    arrows
}

/// The first circle, arrow by arrow.
fn described(arrows: &Arrows<'_>) -> Option<String> {
    let circle = arrows.keys().find_map(|module| circle(arrows, module))?;
    let arrow = |[from, to]: [&str; 2]| format!("{from} imports from {to} ({})", arrows[from][to]);
    Some(circle.windows(2).map(|pair| arrow([pair[0], pair[1]])).collect::<Vec<_>>().join(", "))
}

/// A shortest way from `module` back to it.
fn circle<'a>(arrows: &Arrows<'a>, module: &'a str) -> Option<Vec<&'a str>> {
    let mut came_from = BTreeMap::new();
    let mut queue = VecDeque::from([module]);
    while let Some(from) = queue.pop_front() {
        for &to in arrows.get(from).into_iter().flat_map(BTreeMap::keys) {
            if to == module {
                let mut path = vec![module, from];
                while let Some(&before) = came_from.get(path[path.len() - 1]) {
                    path.push(before);
                }
                path.reverse();
                return Some(path);
            }
            if !came_from.contains_key(to) {
                came_from.insert(to, from);
                queue.push_back(to);
            }
        }
    }
    None
}
