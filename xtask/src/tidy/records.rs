//! The page of measurements.

use super::Finding;
use super::workspace::Workspace;
use crate::records::{PAGE, Records, page};

/// `benches/README.md` is what `cargo xtask records` writes.
pub(super) fn are_on_the_page(workspace: &Workspace) -> Vec<Finding> {
    let mut files: Vec<_> = workspace.files.iter().filter(|file| file.path.ends_with(".json")).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut records = Records::new();
    for file in files {
        if let Some((machine, _)) = file.path.strip_prefix("benches/record/").and_then(|path| path.split_once('/')) {
            records.entry(machine.to_owned()).or_default().push(file.text.clone());
        }
    }
    if records.is_empty() {
        return Vec::new();
    }
    let found = workspace.file(PAGE).map(|file| file.text.as_str());
    match page(&records) {
        Err(error) => vec![Finding::new("benches/record", 0, format!("{error:#}"))],
        Ok(expected) if found == Some(&expected) => Vec::new(),
        Ok(_) => vec![Finding::new(PAGE, 0, "is not what the records say; write it with `cargo xtask records`")],
    }
}
