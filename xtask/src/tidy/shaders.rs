//! Each WGSL function is defined in one file only.

use std::collections::BTreeMap;

use super::Finding;
use super::workspace::Workspace;

/// Functions that are nevertheless defined in several files; the list may only become shorter.
const REPEATED: [&str; 0] = [];

/// No two `.wgsl` files have a function with the same body: code that several modules share is a part that they all include. A
/// function whose body is a single statement may be repeated, since it is a declaration rather than an algorithm.
pub(super) fn functions_stand_once(workspace: &Workspace) -> Vec<Finding> {
    let mut first: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    let mut repeated: Vec<&str> = Vec::new();
    let mut findings = Vec::new();
    for file in workspace.files.iter().filter(|file| file.path.ends_with(".wgsl")) {
        for Function { name, line, body } in functions(&file.text) {
            if body.matches([';', '}']).count() < 2 {
                continue;
            }
            let (path, at) = *first.entry(body).or_insert((&file.path, line));
            if path == file.path {
                continue;
            }
            if let Some(known) = REPEATED.into_iter().find(|known| *known == name) {
                repeated.push(known);
            } else {
                let message =
                    format!("`{name}` has the body of a function at {path}:{at}; make it a part that both modules include");
                findings.push(Finding::new(&file.path, line, message));
            }
        }
    }
    let gone = REPEATED.into_iter().filter(|known| !repeated.contains(known));
    findings.extend(gone.map(|name| {
        Finding::new("xtask/src/tidy/shaders.rs", 0, format!("`{name}` is no longer repeated: remove it from the list"))
    }));
    findings
}

struct Function {
    name: String,
    line: usize,
    /// The text from the arguments on, without comments, with whitespace collapsed to single spaces.
    body: String,
}

fn functions(text: &str) -> Vec<Function> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let mut functions = Vec::new();
    let mut lines = code.iter().enumerate();
    while let Some((start, line)) = lines.next() {
        let Some((name, _)) = line.strip_prefix("fn ").and_then(|rest| rest.split_once('(')) else { continue };
        let mut body = line["fn ".len() + name.len()..].to_owned();
        // Ends at the first closing brace that is not indented, or that ends the line of the signature.
        if !(body.trim_end().ends_with('}') && body.contains('{')) {
            for (_, line) in lines.by_ref() {
                body.push(' ');
                body.push_str(line);
                if line.starts_with('}') {
                    break;
                }
            }
        }
        let inner = body.find('{').map_or("", |at| &body[at + 1..]).trim().trim_end_matches('}');
        let args = body.split('{').next().unwrap_or_default();
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        functions.push(Function { name: name.to_owned(), line: start + 1, body: format!("{} {}", words(args), words(inner)) });
    }
    functions
}
