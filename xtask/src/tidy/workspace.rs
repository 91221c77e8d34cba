//! The input of the rules: the packages of the workspace, and its text files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

use super::archives::Archive;
use super::weight::{LIMITS, TARGET, unique_packages};
use crate::metadata::{Package, packages};
use crate::shell::{command, output, root};

/// The workspace, read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) files: Vec<File>,
    /// The packages that crates with a limit need, in the order of [`LIMITS`].
    pub(crate) trees: Vec<BTreeSet<String>>,
    pub(crate) archives: Vec<Archive>,
    /// What actionlint says of the workflows.
    pub(crate) actionlint: String,
}

/// A text file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct File {
    /// Relative to the root folder of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Workspace {
    /// Reads the workspace, with the dependency trees of the crates in [`LIMITS`].
    pub(crate) fn read() -> Result<Self> {
        let packages = packages()?;
        let mut files = Vec::new();
        collect(root(), "", &mut files)?;
        let mut trees = Vec::new();
        for (name, features, _) in LIMITS {
            let mut tree = command("cargo tree --edges normal --prefix none --target");
            let printed = output(tree.args([TARGET, "--package", name, "--features", features]))?;
            trees.push(unique_packages(&printed));
        }
        let published = packages.iter().filter(|package| package.short_name().is_some());
        let archives = published.map(Archive::of).collect::<Result<_>>()?;
        let actionlint = super::workflows::actionlint()?.unwrap_or_else(|| {
            eprintln!("actionlint is not installed, so workflows are not linted");
            String::new()
        });
        Ok(Self { packages, files, trees, archives, actionlint })
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Rust files in `folder`.
    pub(crate) fn rust_files<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(".rs") && file.path.starts_with(folder))
    }
}

/// Text files in `folder`, except build output, downloads and the files of git.
fn collect(folder: &Path, path: &str, files: &mut Vec<File>) -> Result<()> {
    const KINDS: [&str; 9] = ["rs", "wgsl", "toml", "md", "py", "sh", "yml", "yaml", "json"];
    for entry in fs::read_dir(folder).with_context(|| format!("could not list {}", folder.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        let hidden = name.starts_with('.') && ![".ci", ".cargo", ".config", ".github"].contains(&name.as_str());
        if hidden || path == "runs" || ["target", "__pycache__"].contains(&name.as_str()) {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &path, files)?;
        } else if entry.path().is_file()
            && (path.starts_with(".ci/")
                || name.starts_with("LICENSE-")
                || name.rsplit_once('.').is_some_and(|(_, kind)| KINDS.contains(&kind)))
        {
            let text = fs::read_to_string(entry.path()).with_context(|| format!("{path} is not a text file"))?;
            files.push(File { path, text });
        }
    }
    Ok(())
}
