use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Whether a file can be made at `path`, which `option` names, as far as can be told before there is anything to write.
///
/// # Errors
/// If it is a folder, or its folder is not there.
pub fn check_output(option: &str, path: &Path) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() || path.is_dir() {
        bail!("{}: {option} wants a file in a folder that is there", path.display());
    }
    Ok(())
}

/// Writes results as one JSON object.
///
/// # Errors
/// If they cannot be written.
pub fn write_json(path: &Path, results: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(results)? + "\n";
    std::fs::write(path, text).with_context(|| format!("{}: cannot write the results", path.display()))
}
