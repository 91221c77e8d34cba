//! The workflows of CI.

use std::io::ErrorKind;

use anyhow::{Context as _, Result, bail};

use super::Finding;
use super::workspace::{File, Workspace};
use crate::shell::command;

/// The output of actionlint, one line per finding; `None` if it is not installed.
pub(super) fn actionlint() -> Result<Option<String>> {
    let output = match command("actionlint -oneline").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        output => output.context("could not start `actionlint`")?,
    };
    // It ends with 1 if there are findings.
    if !matches!(output.status.code(), Some(0 | 1)) {
        bail!("`actionlint` failed ({}): {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(Some(String::from_utf8_lossy(&output.stdout).into_owned()))
}

pub(super) fn pass_actionlint(workspace: &Workspace) -> Vec<Finding> {
    let finding = |said: &str| {
        let mut parts = said.splitn(4, ':');
        let (path, line, _column, message) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
        Some(Finding::new(path.replace('\\', "/"), line, message.trim()))
    };
    let said = workspace.actionlint.lines().filter(|line| !line.is_empty());
    said.map(|said| finding(said).unwrap_or_else(|| Finding::new(".github/workflows", 0, said))).collect()
}

pub(super) fn use_the_declared_rust(workspace: &Workspace) -> Vec<Finding> {
    let manifest = workspace.file("Cargo.toml").map_or("", |file| file.text.as_str());
    let declared = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap_or("").trim_matches('"');
    let mut findings = Vec::new();
    for File { path, text } in workspace.files.iter().filter(|file| file.path.starts_with(".github/workflows/")) {
        for (line, number) in text.lines().zip(1..).filter(|(line, _)| line.to_lowercase().contains("toolchain")) {
            let words = line.split(|c: char| !c.is_ascii_digit() && c != '.');
            for version in words.filter(|word| word.trim_matches('.').contains('.') && *word != declared) {
                let message = format!("uses Rust {version}, but `rust-version` in Cargo.toml is `{declared}`");
                findings.push(Finding::new(path, number, message));
            }
        }
    }
    findings
}
