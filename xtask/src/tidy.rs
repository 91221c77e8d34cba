//! `cargo xtask tidy`: rules of this workspace that neither the compiler nor clippy knows.
//!
//! A rule is a function from the [`Workspace`] to findings, so that each can be tested on a made-up workspace that breaks it. A
//! remark that a reviewer makes twice becomes a rule.

mod archives;
mod arrows;
mod circles;
mod docs;
mod imports;
mod kernels;
mod manifests;
mod records;
mod rooms;
mod shaders;
mod source;
mod weight;
mod workflows;
mod workspace;

#[cfg(test)]
mod tests;

use std::fmt;
use std::process::ExitCode;

use anyhow::Result;

use workspace::Workspace;

use crate::shell;

/// What is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// A path relative to the root folder of the workspace.
    path: String,
    /// Counted from one; zero if the finding is about the whole file.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, message } = self;
        if *line == 0 { write!(f, "{path}: {message}") } else { write!(f, "{path}:{line}: {message}") }
    }
}

type Rule = fn(&Workspace) -> Vec<Finding>;

const RULES: &[Rule] = &[
    archives::hold_what_users_need,
    arrows::point_down,
    arrows::wgpu_is_named_below,
    circles::files_form_none,
    circles::modules_form_none,
    docs::architecture_names_files,
    docs::guides_are_in_the_documentation,
    docs::links_lead_to_files,
    docs::links_of_readmes_are_absolute,
    docs::readmes_are_the_short_front_pages,
    manifests::are_complete,
    kernels::have_twins,
    records::are_on_the_page,
    rooms::imports_name_their_module,
    shaders::functions_stand_once,
    source::comments_are_wrapped,
    source::files_are_short,
    source::nothing_is_left_over,
    source::libraries_do_not_print,
    source::unsafe_is_listed,
    source::no_machine_is_named,
    weight::stays_low,
    workflows::pass_actionlint,
    workflows::use_the_declared_rust,
];

pub(crate) fn run() -> Result<ExitCode> {
    let findings = findings()?;
    shell::print(findings.iter().map(|finding| format!("{finding}\n")).collect::<String>().as_bytes())?;
    eprintln!("{} rules, {} findings", RULES.len(), findings.len());
    Ok(if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The findings of all rules, sorted by path.
pub(crate) fn findings() -> Result<Vec<Finding>> {
    let workspace = Workspace::read()?;
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(&workspace)).collect();
    findings.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
    Ok(findings)
}
