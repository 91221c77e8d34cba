//! Rules on the text of Rust files.

use super::Finding;
use super::workspace::{File, Workspace};

/// The maximum number of lines of a Rust file.
const MAX_LINES: usize = 700;
/// Files that are longer; the list may only become shorter.
const TOO_LONG: &[&str] = &[];

const LEFT_OVER: [(&str, &str); 4] = [
    ("todo!", "is unfinished; implement it, or leave the item out"),
    ("unimplemented!", "is unfinished; implement it, or leave the item out"),
    ("dbg!", "is for debugging only; remove it"),
    ("#[ignore", "skips a test for good; fix the test, or check for what it needs when it runs"),
];

const PRINTS: [&str; 4] = ["println!", "eprintln!", "print!", "eprint!"];

pub(super) fn files_are_short(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in workspace.rust_files("") {
        let n_lines = file.text.lines().count();
        let listed = TOO_LONG.contains(&file.path.as_str());
        if n_lines > MAX_LINES && !listed {
            findings.push(Finding::new(&file.path, 0, format!("has {n_lines} lines, more than {MAX_LINES}; split it")));
        }
        if n_lines <= MAX_LINES && listed {
            findings.push(Finding::new(
                &file.path,
                0,
                "is short enough now; remove it from the list in xtask/src/tidy/source.rs",
            ));
        }
    }
    findings
}

/// rustfmt wraps code at `max_width`, but not comments. Rows of Markdown tables cannot be wrapped.
pub(super) fn comments_are_wrapped(workspace: &Workspace) -> Vec<Finding> {
    let settings = workspace.file("rustfmt.toml").map_or("", |file| file.text.as_str());
    let width = settings.lines().find_map(|line| line.strip_prefix("max_width = ")).and_then(|width| width.parse().ok());
    // rustfmt's default.
    let width = width.unwrap_or(100);
    let mut findings = Vec::new();
    for file in workspace.rust_files("") {
        for (text, line) in file.text.lines().zip(1..) {
            let Some(comment) = text.trim_start().strip_prefix("//") else { continue };
            let is_row = comment.trim_start_matches(['/', '!']).trim_start().starts_with('|');
            let n_chars = text.chars().count();
            if n_chars > width && !is_row {
                findings.push(Finding::new(
                    &file.path,
                    line,
                    format!("is a comment of {n_chars} characters, more than {width}; wrap it"),
                ));
            }
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

/// Only programs and tests print; libraries return values and errors.
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

/// The page that lists the files of the libraries with `unsafe`, and why each is sound.
const UNSAFE_LIST: &str = "ARCHITECTURE.md";

/// A crate forbids `unsafe` code, or its files that have some are listed, and no others.
pub(super) fn unsafe_is_listed(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    let section = workspace.file(UNSAFE_LIST).and_then(|file| file.text.split_once("\n## Unsafe code\n"));
    let rows = section.map_or("", |(_, section)| section.split("\n## ").next().unwrap_or(section)).lines();
    let names = rows.filter_map(|row| row.strip_prefix("| `")?.split_once('`')).map(|(name, _)| format!("crates/{name}"));
    let listed: Vec<String> = names.collect();
    let mut found = Vec::new();
    for package in workspace.packages.iter().filter(|package| package.short_name().is_some()) {
        let sources = format!("{}/src/", package.folder);
        let is_unsafe = |file: &&File| code_lines(&file.text).iter().any(|(_, code)| has_word(code, "unsafe"));
        let files: Vec<String> = workspace.rust_files(&sources).filter(is_unsafe).map(|file| file.path.clone()).collect();
        let library = format!("{sources}lib.rs");
        if files.is_empty() && !workspace.file(&library).is_some_and(|file| file.text.contains("#![forbid(unsafe_code)]")) {
            findings.push(Finding::new(library, 0, "is the root of a crate without `unsafe`; add `#![forbid(unsafe_code)]`"));
        }
        for path in &files {
            if !listed.contains(path) {
                let why = format!("has `unsafe`; say in {UNSAFE_LIST} under Unsafe code what it does and why it is sound");
                findings.push(Finding::new(path, 0, why));
            }
        }
        found.extend(files);
    }
    for path in listed.iter().filter(|path| !found.contains(path)) {
        findings.push(Finding::new(UNSAFE_LIST, 0, format!("lists {path} under Unsafe code, which has no `unsafe`")));
    }
    findings
}

/// Only `.ci/run` may name the folder of real data that machines of CI have beside the checkout.
pub(super) fn no_machine_is_named(workspace: &Workspace) -> Vec<Finding> {
    const BESIDE: &str = concat!("..", "/shared");
    let mut findings = Vec::new();
    for file in workspace.files.iter().filter(|file| file.path != ".ci/run") {
        let named = file.text.lines().zip(1..).filter(|(text, _)| text.contains(BESIDE));
        findings.extend(
            named.map(|(_, line)| {
                Finding::new(&file.path, line, format!("`{BESIDE}` exists on some machines only; use BRISK_DATA"))
            }),
        );
    }
    findings
}

/// Whether `code` contains `word`, not as part of a longer word.
fn has_word(code: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let ends_in_letter = word.ends_with(is_part);
    code.match_indices(word).any(|(at, _)| {
        let longer_before = word.starts_with(is_part) && code[..at].ends_with(is_part);
        let longer_after = ends_in_letter && code[at + word.len()..].starts_with(is_part);
        !longer_before && !longer_after
    })
}

/// The lines of `text` that contain code, numbered from one, without comments and without the contents of string and
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

/// The length in bytes of the comment or literal that `rest` starts with (0 if it starts with neither), and whether it is a
/// literal. `before` is the beginning of the line.
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
