//! The modules of a crate form no circle: imports between them run one way.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Finding;
use super::rooms::{imported, modules};
use super::workspace::Workspace;

/// For each module, those that it imports from, and the first place where it does.
type Arrows<'a> = BTreeMap<&'a str, BTreeMap<&'a str, String>>;

/// Modules are those that a crate's root declares; a file belongs to the one whose folder it is in. Tests may import from all.
pub(super) fn modules_form_none(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        let root = format!("{}/src/lib.rs", package.folder);
        let modules = workspace.file(&root).map_or_else(BTreeSet::new, |file| modules(&file.text));
        let arrows = arrows(workspace, &format!("{}/src/", package.folder), &modules);
        if let Some(circle) = arrows.keys().find_map(|module| circle(&arrows, module)) {
            let arrow = |[from, to]: [&str; 2]| format!("{from} imports from {to} ({})", arrows[from][to]);
            let path: Vec<String> = circle.windows(2).map(|pair| arrow([pair[0], pair[1]])).collect();
            findings.push(Finding::new(&root, 0, format!("modules form a circle: {}", path.join(", "))));
        }
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
