//! Within a crate, a file imports from the module that owns a thing.

use std::collections::BTreeSet;

use super::Finding;
use super::source::code_lines;
use super::workspace::Workspace;

/// The root re-exports for other crates: within the crate, `crate::` is followed by one of its modules.
pub(super) fn imports_name_their_module(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        let (sources, root) = (format!("{}/src/", package.folder), format!("{}/src/lib.rs", package.folder));
        let modules = workspace.file(&root).map_or_else(BTreeSet::new, |file| modules(&file.text));
        for file in workspace.rust_files(&sources).filter(|file| file.path != root) {
            let of_root = imported(&file.text, "crate::").into_iter().filter(|(_, name)| !modules.contains(name.as_str()));
            findings.extend(of_root.map(|(line, name)| {
                Finding::new(&file.path, line, format!("`crate::{name}` is a re-export for other crates; name its module"))
            }));
        }
    }
    findings
}

/// The modules that a file declares.
pub(super) fn modules(text: &str) -> BTreeSet<String> {
    let declared = |(_, code): (usize, String)| {
        let (before, name) = code.split_once("mod ")?;
        let is_declaration = before.trim().is_empty() || before.trim_start().starts_with("pub");
        is_declaration.then(|| first_word(name).to_owned())
    };
    code_lines(text).into_iter().filter_map(declared).collect()
}

/// The first names after `root`, which is `crate::` or as many `super::`, in the code of a file, with their lines; macros, which
/// live in the root, are left out.
pub(super) fn imported(text: &str, root: &str) -> Vec<(usize, String)> {
    let lines = code_lines(text);
    let code: String = lines.iter().map(|(_, code)| format!("{code}\n")).collect();
    let mut found = Vec::new();
    for (at, path) in code.match_indices(root) {
        let is_other = code[..at].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | ':'));
        if is_other {
            continue;
        }
        let (line, _) = lines[code[..at].matches('\n').count()];
        let rest = &code[at + path.len()..];
        let names = if rest.starts_with('{') { of_group(rest) } else { vec![rest] };
        let names = names.into_iter().map(str::trim_start).filter(|name| !name[first_word(name).len()..].starts_with('!'));
        found.extend(names.map(first_word).filter(|name| !name.is_empty()).map(|name| (line, name.to_owned())));
    }
    found
}

/// The items of a group such as `{a, b::{c, d}}`, without those of groups in it.
pub(super) fn of_group(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut items) = (0, 1, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 1 => {
                items.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
        if depth == 0 {
            items.push(&text[start..at]);
            break;
        }
    }
    items
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
}
