//! The packages of the workspace, as cargo lists them.

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell::{command, output};

/// A crate that is published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) name: String,
    pub(crate) features: Vec<String>,
}

/// The crates that are published, in alphabetical order.
pub(crate) fn published() -> Result<Vec<Published>> {
    of_metadata(&output(&mut command("cargo metadata --format-version 1 --no-deps"))?)
}

fn of_metadata(metadata: &str) -> Result<Vec<Published>> {
    let metadata: Value = serde_json::from_str(metadata).context("`cargo metadata` printed something that is not JSON")?;
    let packages = metadata["packages"].as_array().context("`cargo metadata` lists no packages")?.iter();
    packages
        .filter(|package| package["publish"].is_null())
        .map(|package| {
            let name = package["name"].as_str().context("`cargo metadata` lists a package without a name")?.to_owned();
            let features = package["features"].as_object().context("`cargo metadata` lists a package without features")?;
            Ok(Published { name, features: features.keys().cloned().collect() })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_that_are_not_published_are_left_out() {
        let metadata = r#"{"packages": [
            {"name": "brisk-table", "publish": null, "features": {"csv": [], "default": ["csv"]}},
            {"name": "xtask", "publish": [], "features": {}}]}"#;
        let expected = Published { name: "brisk-table".into(), features: vec!["csv".into(), "default".into()] };
        assert_eq!(of_metadata(metadata).expect("valid metadata"), [expected]);
    }
}
