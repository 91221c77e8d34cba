//! The packages of the workspace, as cargo lists them.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell::{command, output};

/// A member of the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Relative to the root folder of the workspace, with `/`: `crates/table`.
    pub(crate) folder: String,
    pub(crate) description: String,
    pub(crate) license: String,
    pub(crate) repository: String,
    pub(crate) keywords: Vec<String>,
    pub(crate) categories: Vec<String>,
    /// Whether the manifest says how docs.rs builds it.
    pub(crate) has_docs_settings: bool,
    pub(crate) features: Vec<String>,
    /// Names of direct dependencies, of any kind.
    pub(crate) dependencies: Vec<String>,
}

impl Package {
    /// The name of a published crate in the table of dependencies: `table` for `crates/table`.
    pub(crate) fn short_name(&self) -> Option<&str> {
        self.folder.strip_prefix("crates/")
    }
}

/// The members of the workspace, in alphabetical order.
pub(crate) fn packages() -> Result<Vec<Package>> {
    of_metadata(&output(&mut command("cargo metadata --format-version 1 --no-deps"))?)
}

fn of_metadata(metadata: &str) -> Result<Vec<Package>> {
    let metadata: Value = serde_json::from_str(metadata).context("`cargo metadata` printed something that is not JSON")?;
    let root = metadata["workspace_root"].as_str().unwrap_or_default().replace('\\', "/");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    let package = |package: &Value| {
        let manifest = text(&package["manifest_path"]).replace('\\', "/");
        let folder = manifest.strip_prefix(&root).unwrap_or(&manifest).trim_start_matches('/').trim_end_matches("/Cargo.toml");
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        Package {
            name: text(&package["name"]),
            folder: folder.to_owned(),
            description: text(&package["description"]),
            license: text(&package["license"]),
            repository: text(&package["repository"]),
            keywords: texts(&package["keywords"]),
            categories: texts(&package["categories"]),
            has_docs_settings: package["metadata"]["docs"]["rs"].is_object(),
            features: package["features"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect(),
            dependencies: dependencies.map(|dependency| text(&dependency["name"])).collect(),
        }
    };
    Ok(metadata["packages"].as_array().context("`cargo metadata` lists no packages")?.iter().map(package).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_read_from_cargos_metadata() {
        let metadata = r#"{"workspace_root": "/home/brisk", "packages": [{
            "name": "brisk-table", "manifest_path": "/home/brisk/crates/table/Cargo.toml", "description": null, "license": "MIT",
            "repository": null, "keywords": ["csv", "mmap"], "categories": ["science"], "metadata": {"docs": {"rs": {}}},
            "features": {"csv": [], "default": ["csv"]},
            "dependencies": [{"name": "brisk-loader", "kind": null}, {"name": "tempfile", "kind": "dev"}]}]}"#;
        let expected = Package {
            name: "brisk-table".into(),
            folder: "crates/table".into(),
            license: "MIT".into(),
            keywords: vec!["csv".into(), "mmap".into()],
            categories: vec!["science".into()],
            has_docs_settings: true,
            features: vec!["csv".into(), "default".into()],
            dependencies: vec!["brisk-loader".into(), "tempfile".into()],
            ..Package::default()
        };
        assert_eq!(of_metadata(metadata).expect("valid JSON"), [expected]);
    }
}
