//! Which file of a crate an import leads to.

use std::collections::BTreeMap;

use super::rooms::of_group;
use super::source::code_lines;
use super::workspace::{File, Workspace};

/// Names from the root of a crate on: those of modules, then perhaps that of an item, and names in it.
type Path = Vec<String>;

/// An import of an item of another file of the crate.
pub(super) struct Import<'a> {
    pub(super) from: &'a File,
    pub(super) line: usize,
    pub(super) to: &'a File,
    pub(super) item: String,
}

/// The imports between the files in the folder `sources`, which ends in `/`: by `use`, or where an item is used. If the module
/// that is named re-exports the item, the import leads to the file that defines it. Declarations of modules, re-exports, and
/// imports of whole modules do not count, but the use of such a module does. Tests are left out.
pub(super) fn imports<'a>(workspace: &'a Workspace, sources: &str) -> Vec<Import<'a>> {
    let named = |file: &'a File| Some((module_of(file.path.strip_prefix(sources)?)?, file));
    let files: BTreeMap<Path, &File> = workspace.files.iter().filter_map(named).collect();
    let read = |(module, file): (&Path, &&'a File)| (module.clone(), Module::read(module, file, &files));
    let modules: BTreeMap<Path, Module<'_>> = files.iter().map(read).collect();
    let mut imports = Vec::new();
    for (own, module) in &modules {
        let of_file = module.imports.iter().filter_map(|(line, path)| Some((line, owner(&modules, path, 0)?)));
        let of_others = of_file.filter(|(_, (owner, _))| owner != own && !owner.is_empty());
        imports.extend(of_others.map(|(&line, (owner, item))| Import {
            from: module.file,
            line,
            to: modules[&owner].file,
            item,
        }));
    }
    imports
}

/// The module that a file is, unless it has tests; the root is the empty path.
fn module_of(path: &str) -> Option<Path> {
    let path = path.strip_suffix(".rs")?;
    let names: Path = path.strip_suffix("/mod").unwrap_or(path).split('/').map(str::to_owned).collect();
    let has_tests = names.iter().any(|name| name == "test" || name.ends_with("tests"));
    match &names[..] {
        _ if has_tests => None,
        [root] if root == "lib" => Some(Vec::new()),
        _ => Some(names),
    }
}

/// The file that defines what `path` names, and its name there; `None` for a module.
fn owner(modules: &BTreeMap<Path, Module<'_>>, path: &[String], n_followed: usize) -> Option<(Path, String)> {
    /// Re-exports may form a circle.
    const MOST_FOLLOWED: usize = 8;
    let n_names = (0..=path.len()).rev().find(|&n| modules.contains_key(&path[..n]))?;
    let (module, [item, rest @ ..]) = path.split_at(n_names) else { return None };
    let exports = if n_followed < MOST_FOLLOWED { &modules[module].exports[..] } else { &[] };
    if let Some((_, path)) = exports.iter().find(|(name, _)| name == item) {
        return owner(modules, &[path, rest].concat(), n_followed + 1);
    }
    let of_glob = |(_, path): &(String, Path)| {
        let (module, item) =
            owner(modules, &[&path[..path.len() - 1], std::slice::from_ref(item), rest].concat(), n_followed + 1)?;
        modules[&module].defines(&item).then_some((module, item))
    };
    let by_glob = exports.iter().filter(|(name, _)| name == "*").find_map(of_glob);
    Some(by_glob.unwrap_or_else(|| (module.to_vec(), item.clone())))
}

struct Module<'a> {
    file: &'a File,
    code: String,
    /// What it re-exports, by name; `*` for all items of a module.
    exports: Vec<(String, Path)>,
    /// What it imports, with the lines.
    imports: Vec<(usize, Path)>,
}

impl<'a> Module<'a> {
    fn read(module: &[String], file: &'a File, files: &BTreeMap<Path, &File>) -> Self {
        let (mut code, mut starts) = (String::new(), Vec::new());
        for (line, text) in code_lines(&file.text) {
            starts.push((code.len(), line));
            code.push_str(&text);
            code.push('\n');
        }
        code.truncate(code.find("#[cfg(test)]\nmod tests {").unwrap_or(code.len()));
        let line_of = |at: usize| starts[starts.partition_point(|&(start, _)| start <= at) - 1].1;
        let (mut exports, mut imports, mut aliases) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut body = code.clone();
        for Use { at, text, is_export } in uses(&code) {
            body.replace_range(at..at + text.len(), &" ".repeat(text.len()));
            for (path, name) in expanded(text).iter().map(|path| named(path)) {
                let Some(path) = resolved(module, &path, files) else { continue };
                if files.contains_key(&path) {
                    aliases.insert(name.clone(), path.clone());
                }
                if is_export { exports.push((name, path)) } else { imports.push((line_of(at), path)) }
            }
        }
        for (at, path) in paths(&body) {
            let of_alias = || Some([aliases.get(&path[0])?, &path[1..]].concat());
            let path = resolved(module, &path, files).or_else(of_alias);
            imports.extend(path.map(|path| (line_of(at), path)));
        }
        Self { file, code, exports, imports }
    }

    /// Whether it has an item of this name.
    fn defines(&self, name: &str) -> bool {
        const KINDS: [&str; 9] = ["fn ", "struct ", "enum ", "trait ", "type ", "const ", "static ", "union ", "macro_rules! "];
        let is_it = |rest: &str| rest.strip_prefix(name).is_some_and(|rest| !rest.starts_with(is_in_name));
        KINDS.iter().any(|kind| self.code.match_indices(kind).any(|(at, _)| is_it(&self.code[at + kind.len()..])))
    }
}

/// A path in `module` from the root on, if it leads to this crate.
fn resolved(module: &[String], path: &[String], files: &BTreeMap<Path, &File>) -> Option<Path> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some([module, rest].concat()),
        "super" => {
            let n_up = path.iter().take_while(|name| *name == "super").count();
            Some([&module[..module.len().checked_sub(n_up)?], &path[n_up..]].concat())
        }
        _ => Some([module, path].concat()).filter(|path| files.contains_key(&path[..module.len() + 1])),
    }
}

/// A `use`: its tree, and where that begins.
struct Use<'c> {
    at: usize,
    text: &'c str,
    is_export: bool,
}

fn uses(code: &str) -> Vec<Use<'_>> {
    let uses = code.match_indices("use ").filter(|(at, _)| !code[..*at].ends_with(is_in_name));
    let parsed = uses.filter_map(|(at, word)| {
        let (before, at) = (code[..at].trim_end(), at + word.len());
        let visibility = before.strip_suffix(')').and_then(|before| before.rsplit_once('(')).map_or(before, |(before, _)| before);
        let is_export = visibility.ends_with("pub");
        Some(Use { at, text: &code[at..at + code[at..].find(';')?], is_export })
    });
    parsed.collect()
}

/// The paths of a tree such as `a::{b, c::d as e}`.
fn expanded(tree: &str) -> Vec<String> {
    let Some(group) = tree.find('{') else { return vec![tree.trim().to_owned()] };
    let items = of_group(&tree[group..]).into_iter().map(str::trim).filter(|item| !item.is_empty());
    items.flat_map(|item| expanded(&format!("{}{item}", &tree[..group]))).collect()
}

/// The names of an expanded path, and the name that it introduces.
fn named(path: &str) -> (Path, String) {
    let (path, alias) = path.split_once(" as ").map_or((path, None), |(path, alias)| (path, Some(alias)));
    let mut names: Path = path.split("::").map(|name| name.trim().to_owned()).collect();
    // `module::{self}`.
    if names.len() > 1 {
        names.pop_if(|last| last == "self");
    }
    let name = alias.or(names.last().map(String::as_str)).unwrap_or_default().trim().to_owned();
    (names, name)
}

/// The paths of two names or more in code without `use`, and where they begin.
fn paths(code: &str) -> Vec<(usize, Path)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(separator) = code[at..].find("::").map(|length| at + length) {
        let start = code[..separator].trim_end_matches(is_in_name).len();
        let end = code.len() - code[separator..].trim_start_matches(|c| is_in_name(c) || c == ':').len();
        let names: Path = code[start..end].split("::").map(str::to_owned).filter(|name| !name.is_empty()).collect();
        if names.len() > 1 && start < separator && !code[..start].ends_with(['$', '.', ':']) {
            found.push((start, names));
        }
        at = end.max(separator + 2);
    }
    found
}

fn is_in_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}
