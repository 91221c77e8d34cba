//! What is published: the files of a crate's archive on crates.io.

use std::fs;

use anyhow::Result;

use super::Finding;
use super::workspace::Workspace;
use crate::metadata::Package;
use crate::shell::{command, output, root};

/// The maximum size of a file.
const MAX_BYTES: u64 = 200_000;

/// The files that cargo would publish of a crate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Archive {
    /// The crate's folder.
    pub(super) folder: String,
    /// Paths relative to it, with `/`, and sizes.
    pub(super) files: Vec<(String, u64)>,
}

impl Archive {
    /// Asks cargo, which builds nothing for that.
    pub(super) fn of(package: &Package) -> Result<Self> {
        let listed = output(command("cargo package --list --allow-dirty --package").arg(&package.name))?;
        let folder = root().join(&package.folder);
        // Files that cargo makes have no size here.
        let bytes = |path: &str| fs::metadata(folder.join(path)).map_or(0, |metadata| metadata.len());
        let files = listed.lines().map(|path| (path.replace('\\', "/"), bytes(path))).collect();
        Ok(Self { folder: package.folder.clone(), files })
    }
}

/// An archive has the licences and the README, but no tests and benches, which need the repository, and no large files.
pub(super) fn hold_what_users_need(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for Archive { folder, files } in &workspace.archives {
        for needed in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            if !files.iter().any(|(path, _)| path == needed) {
                let message = "is not published; if it is there, see `include` and `exclude` in Cargo.toml";
                findings.push(Finding::new(format!("{folder}/{needed}"), 0, message));
            }
        }
        for (path, n_bytes) in files {
            let mut says = |message: String| findings.push(Finding::new(format!("{folder}/{path}"), 0, message));
            if ["benches/", "tests/"].iter().any(|folder| path.starts_with(folder)) {
                says("is published; add `exclude.workspace = true`".to_owned());
            }
            if *n_bytes > MAX_BYTES {
                says(format!("is published and has {n_bytes} bytes, more than {MAX_BYTES}; make it smaller or exclude it"));
            }
        }
    }
    findings
}
