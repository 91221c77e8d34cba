//! The input of the rules: the packages of the workspace, and its text files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell::{command, output, root};

/// The workspace, read once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Workspace {
    pub(crate) packages: Vec<Package>,
    pub(crate) files: Vec<File>,
    /// Crates with a limit on packages, and the packages that they need.
    pub(crate) trees: Vec<(String, BTreeSet<String>)>,
}

/// A member of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the root folder of the workspace, with `/`: `crates/table`.
    pub(crate) folder: String,
    pub(crate) description: String,
    pub(crate) license: String,
    /// Names of direct dependencies, of any kind.
    pub(crate) dependencies: Vec<String>,
}

impl Package {
    /// The name of a published crate in the table of dependencies: `table` for `crates/table`.
    pub(crate) fn short_name(&self) -> Option<&str> {
        self.folder.strip_prefix("crates/")
    }
}

/// A text file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct File {
    /// Relative to the root folder of the workspace, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Workspace {
    /// Reads the workspace, with the dependency trees of the crates in [`super::weight::LIMITS`].
    pub(crate) fn read() -> Result<Self> {
        let packages = packages(&output(&mut command("cargo metadata --format-version 1 --no-deps"))?)?;
        let mut files = Vec::new();
        collect(root(), "", &mut files)?;
        let mut trees = Vec::new();
        for (name, _) in super::weight::LIMITS {
            let printed = output(command("cargo tree --edges normal --prefix none --package").arg(name))?;
            trees.push((name.to_owned(), super::weight::unique_packages(&printed)));
        }
        Ok(Self { packages, files, trees })
    }

    pub(crate) fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Rust files in `folder`.
    pub(crate) fn rust_files<'a>(&'a self, folder: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(".rs") && file.path.starts_with(folder))
    }
}

/// The members that `cargo metadata` lists.
fn packages(metadata: &str) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).context("`cargo metadata` printed something that is not JSON")?;
    let root = metadata["workspace_root"].as_str().unwrap_or_default().replace('\\', "/");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let package = |package: &Value| {
        let manifest = text(&package["manifest_path"]).replace('\\', "/");
        let folder = manifest.strip_prefix(&root).unwrap_or(&manifest).trim_start_matches('/').trim_end_matches("/Cargo.toml");
        Package {
            name: text(&package["name"]),
            folder: folder.to_owned(),
            description: text(&package["description"]),
            license: text(&package["license"]),
            dependencies: package["dependencies"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|dependency| text(&dependency["name"]))
                .collect(),
        }
    };
    Ok(metadata["packages"].as_array().into_iter().flatten().map(package).collect())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_cargos_metadata() {
        let metadata = r#"{"workspace_root": "/home/brisk", "packages": [{
            "name": "brisk-table", "manifest_path": "/home/brisk/crates/table/Cargo.toml", "description": null, "license": "MIT",
            "dependencies": [{"name": "brisk-loader", "kind": null}, {"name": "tempfile", "kind": "dev"}]}]}"#;
        let expected = Package {
            name: "brisk-table".into(),
            folder: "crates/table".into(),
            license: "MIT".into(),
            dependencies: vec!["brisk-loader".into(), "tempfile".into()],
            ..Package::default()
        };
        assert_eq!(packages(metadata).expect("valid JSON"), [expected]);
    }
}
