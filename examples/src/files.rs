use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use brisk_atomic_file::{AtomicFile, is_same_file, write_atomically};
use brisk_table::printable;
use serde_json::Value;

use crate::elsewhere::{is_url, shown};

/// A file of a command line: the option or argument that names it, and its path.
pub type NamedFile<'a> = (&'a str, &'a Path);

/// Checks, before there is anything to write, that a file can be written to the path of `option`.
///
/// # Errors
/// If it is a folder, a device, a pipe or a socket, or if no file can be created in its folder.
pub fn check_output(option: &str, path: &Path) -> Result<()> {
    check_here(option, path)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        bail!("{}: {option} needs a file in a folder that exists", printable(path));
    }
    // Dropped at once, which removes it and leaves the path unchanged.
    AtomicFile::create(path).map(drop).map_err(|error| anyhow!("{}: {option} cannot be written: {error}", printable(path)))
}

/// Checks that what is written has a path rather than a URL.
///
/// # Errors
/// If it is a URL.
pub(crate) fn check_here(option: &str, path: &Path) -> Result<()> {
    if is_url(path) {
        bail!("{}: {option} is written to this machine; give it a path, and copy it to the server afterwards", shown(path));
    }
    Ok(())
}

/// Checks that a model is read from a path rather than a URL.
///
/// # Errors
/// If it is a URL.
pub fn check_model(path: &Path) -> Result<()> {
    if is_url(path) {
        bail!("{}: models are read from a path; download this one first", shown(path));
    }
    Ok(())
}

/// Checks, before anything is opened for writing, that no output would replace an input or another output.
///
/// An input may be a folder; then the files that exist in it are inputs, too.
///
/// # Errors
/// If two paths refer to the same file, possibly through links.
pub fn check_files_differ(outputs: &[NamedFile<'_>], inputs: &[NamedFile<'_>]) -> Result<()> {
    for (i, (option, path)) in outputs.iter().enumerate() {
        for (other_option, other) in inputs.iter().chain(&outputs[..i]) {
            let shown = printable(path);
            if is_same_file(path, other) {
                bail!("{shown}: {option} names the same file as {other_option}; choose another");
            }
            // An output that is a folder is an error of that output.
            let is_input = inputs.iter().any(|(input, _)| input == other_option);
            if is_input && other.is_dir() && is_within(path, other) {
                bail!("{shown}: {option} names a file in the folder {other_option}, which it would replace; choose another");
            }
        }
    }
    Ok(())
}

/// Checks, before there is anything to write, that no output would be among the files of an input folder, where the next run
/// would read it.
///
/// # Errors
/// If the folder contains the path of an output, possibly through links. The output and its folder need not exist.
pub fn check_outside(outputs: &[NamedFile<'_>], (input, folder): NamedFile<'_>) -> Result<()> {
    let Ok(folder) = fs::canonicalize(folder) else { return Ok(()) };
    for (option, path) in outputs {
        let existing = path.ancestors().skip(1).map(|part| if part.as_os_str().is_empty() { Path::new(".") } else { part });
        let existing = existing.into_iter().find_map(|part| fs::canonicalize(part).ok());
        if existing.is_some_and(|part| part.starts_with(&folder)) {
            bail!(
                "{}: {option} is in the folder {input}, where the next run would take it for data; choose another",
                printable(path)
            );
        }
    }
    Ok(())
}

/// Whether there is a file at `path`, and it is somewhere in `folder`.
fn is_within(path: &Path, folder: &Path) -> bool {
    matches!((fs::canonicalize(path), fs::canonicalize(folder)), (Ok(path), Ok(folder)) if path.starts_with(&folder))
}

/// Writes results as one JSON object, which replaces a file at `path` as a whole.
///
/// # Errors
/// If they cannot be written.
pub fn write_json(path: &Path, results: &Value) -> Result<()> {
    let text = serde_json::to_string_pretty(results)? + "\n";
    Ok(write_atomically(path, |file| file.write_all(text.as_bytes()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, is_outside: bool) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for folder in ["data/a", "data.old"] {
            fs::create_dir_all(dir.path().join(folder)).expect("it can be created");
        }
        let checked = check_outside(&[("--model", &dir.path().join(path))], ("--data", &dir.path().join("data")));
        assert_eq!(checked.is_ok(), is_outside, "{path}: {checked:?}");
    }

    #[test]
    fn an_output_has_a_path() {
        let error = check_output("--out", Path::new("s3://me:pass@bucket/p.csv")).expect_err("it is a URL").to_string();
        assert!(error.contains("--out is written to this machine") && !error.contains("pass"), "{error}");
    }

    #[test]
    fn an_output_is_not_among_the_data() {
        check("data/model", false);
        check("data/a/model", false);
        check("data/new/folder/model", false);
        check("data.old/../data/model", false);
        check("model", true);
        check("data.old/model", true);
        check("new/model", true);
    }
}
