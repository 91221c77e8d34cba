//! Rules on the text of Rust files.

use super::Finding;
use super::workspace::{File, Workspace};

/// Lines that a Rust file may have; past that it has become two ideas.
const MAX_LINES: usize = 700;
/// Files that are longer today. This list only shrinks.
const TOO_LONG: &[&str] = &[];

const LEFT_OVER: [(&str, &str); 4] = [
    ("todo!", "is a promise: do it, or leave the item out"),
    ("unimplemented!", "is a promise: do it, or leave the item out"),
    ("dbg!", "was for debugging"),
    ("#[ignore", "skips a test that nobody will run again; gate it on what it needs, or mend it"),
];

const PRINTS: [&str; 4] = ["println!", "eprintln!", "print!", "eprint!"];

pub(super) fn files_are_short(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in workspace.rust_files("") {
        let n_lines = file.text.lines().count();
        let listed = TOO_LONG.contains(&file.path.as_str());
        if n_lines > MAX_LINES && !listed {
            findings.push(Finding::new(&file.path, 0, format!("has {n_lines} lines; past {MAX_LINES}, look for the seam")));
        }
        if n_lines <= MAX_LINES && listed {
            findings.push(Finding::new(
                &file.path,
                0,
                "is short enough now: strike it from the list in xtask/src/tidy/source.rs",
            ));
        }
    }
    findings
}

pub(super) fn nothing_is_left_over(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in workspace.rust_files("") {
        for (line, code) in code_lines(&file.text) {
            let found = LEFT_OVER.iter().filter(|(word, _)| has_word(&code, word));
            findings.extend(found.map(|(word, why)| Finding::new(&file.path, line, format!("`{word}` {why}"))));
        }
    }
    findings
}

/// Only programs print, and tests: a library gives back what it has to say.
pub(super) fn libraries_do_not_print(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in workspace.rust_files("crates/") {
        let is_library = file.path.contains("/src/")
            && !["/src/bin/", "/src/main.rs", "/tests.rs", "/tests/"].iter().any(|part| file.path.contains(part));
        if !is_library {
            continue;
        }
        for (line, code) in code_lines(&file.text) {
            if let Some(word) = PRINTS.iter().find(|word| has_word(&code, word)) {
                findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("`{word}` in a library; only xtask, examples, benches and programs print"),
                ));
            }
        }
    }
    findings
}

/// Files that may have `unsafe` beside the one of their crate; the list only shrinks.
const SECOND_UNSAFE: [&str; 3] = [
    // One call, behind a feature, that acknowledges an experimental interface.
    "crates/kernels/src/core/coop_shape.rs",
    // Register-only SSE2, which the language still calls unsafe though every x86-64 has it.
    "crates/table/src/csv/block.rs",
    // A C library, behind a feature: the other file is about memory that threads share.
    "crates/replicate/src/mpi.rs",
];

/// A crate forbids `unsafe`, or has all of it in one file.
pub(super) fn unsafe_is_in_one_file(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        let sources = format!("{}/src/", package.folder);
        let library = format!("{sources}lib.rs");
        if workspace.file(&library).is_some_and(|file| file.text.contains("#![forbid(unsafe_code)]")) {
            continue;
        }
        let is_unsafe = |file: &&File| code_lines(&file.text).iter().any(|(_, code)| has_word(code, "unsafe"));
        let files: Vec<&str> = workspace
            .rust_files(&sources)
            .filter(is_unsafe)
            .map(|file| file.path.as_str())
            .filter(|path| !SECOND_UNSAFE.contains(path))
            .collect();
        match files[..] {
            [] => findings.push(Finding::new(library, 0, "has no `unsafe` in its crate: say so with `#![forbid(unsafe_code)]`")),
            [_] => {}
            [first, ..] => findings.push(Finding::new(
                first,
                0,
                format!("`unsafe` is in {} files of one crate: {}", files.len(), files.join(", ")),
            )),
        }
    }
    findings
}

/// Real data lies beside a checkout on the machines that run CI, and only what they run may know where.
pub(super) fn paths_are_nobodys_own(workspace: &Workspace) -> Vec<Finding> {
    const BESIDE: &str = concat!("..", "/shared");
    let mut findings = Vec::new();
    for file in workspace.files.iter().filter(|file| file.path != ".ci/run") {
        let named = file.text.lines().zip(1..).filter(|(text, _)| text.contains(BESIDE));
        findings.extend(
            named.map(|(_, line)| Finding::new(&file.path, line, format!("`{BESIDE}` is somebody's folder; take BRISK_DATA"))),
        );
    }
    findings
}

/// Whether `word` stands in `code`, not as the end of a longer word.
fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let ends_in_letter = word.ends_with(is_part);
    code.match_indices(word).any(|(at, _)| {
        let longer_before = word.starts_with(is_part) && code[..at].ends_with(is_part);
        let longer_after = ends_in_letter && code[at + word.len()..].starts_with(is_part);
        !longer_before && !longer_after
    })
}

/// The lines of `text` that hold code, numbered from one, without their comments and without what stands in string and
/// character literals.
pub(super) fn code_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines = vec![String::new()];
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (skipped, is_literal) = skipped_bytes(rest, lines.last().map_or("", String::as_str));
        let taken = if skipped > 0 { skipped } else { c.len_utf8() };
        if is_literal {
            lines.last_mut().expect("there is always a last line").push('"');
        }
        for c in rest[..taken].chars() {
            match c {
                '\n' => lines.push(String::new()),
                c if skipped == 0 => lines.last_mut().expect("there is always a last line").push(c),
                _ => {}
            }
        }
        rest = &rest[taken..];
    }
    (1..).zip(lines).filter(|(_, code)| !code.trim().is_empty()).collect()
}

/// How many bytes of `rest` are one comment or literal (0: it starts with neither), and whether a literal. `before` is the line
/// so far.
fn skipped_bytes(rest: &str, before: &str) -> (usize, bool) {
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), false);
    }
    if rest.starts_with("/*") {
        return (block_comment_bytes(rest), false);
    }
    if rest.starts_with('"') {
        return (quoted_bytes(rest, '"'), true);
    }
    let in_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
    if let Some(after) = rest.strip_prefix('r').filter(|_| !in_word || before.ends_with('b')) {
        let hashes = after.len() - after.trim_start_matches('#').len();
        if after[hashes..].starts_with('"') {
            let end = format!("\"{}", "#".repeat(hashes));
            let body = 1 + hashes + 1;
            return (rest[body..].find(&end).map_or(rest.len(), |at| body + at + end.len()), true);
        }
    }
    if let Some(after) = rest.strip_prefix('\'') {
        // A character, not a lifetime: `'x'`, or an escape.
        let mut chars = after.chars();
        let (first, second) = (chars.next(), chars.next());
        if first == Some('\\') || (first.is_some() && second == Some('\'')) {
            return (quoted_bytes(rest, '\''), true);
        }
    }
    (0, false)
}

fn quoted_bytes(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn block_comment_bytes(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest.as_bytes()[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}
