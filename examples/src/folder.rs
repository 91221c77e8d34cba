use std::path::Path;

use anyhow::{Result, anyhow, bail};
use brisk_atomic_file::AtomicFile;

use crate::files::check_here;

/// Checks, before there is anything to write, that files can be created in the folder `path`, which `option` names. It need not
/// exist yet.
///
/// # Errors
/// If `path`, or the part of it that exists, is not a folder or cannot be written to.
pub fn check_folder(option: &str, path: &Path) -> Result<()> {
    check_here(option, path)?;
    let mut existing = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
    let existing = existing.find(|folder| folder.symlink_metadata().is_ok()).unwrap_or(Path::new("."));
    let shown = path.display();
    if !existing.is_dir() {
        bail!("{shown}: {option} needs a folder, and {} is not one", existing.display());
    }
    // Dropped at once, which removes it.
    let created = AtomicFile::create(existing.join("check"));
    created.map(drop).map_err(|error| anyhow!("{shown}: {option} cannot be written to: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_may_be_missing_but_not_a_file() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = |name: &str| dir.path().join(name);
        fs::write(path("file"), "").expect("it can be written");
        for name in ["", "new", "new/below"] {
            check_folder("--runs", &path(name)).expect("it can be created");
        }
        for name in ["file", "file/below"] {
            let error = check_folder("--runs", &path(name)).expect_err("it cannot be created").to_string();
            assert!(error.contains("--runs needs a folder, and ") && error.ends_with("file is not one"), "{error}");
        }
        assert_eq!(fs::read_dir(dir.path()).expect("it is there").count(), 1, "nothing was left behind");
    }

    #[test]
    #[cfg(unix)]
    fn a_link_that_leads_nowhere_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        std::os::unix::fs::symlink("nowhere", dir.path().join("link")).expect("links can be made");
        check_folder("--runs", &dir.path().join("link")).expect_err("it cannot be created");
    }
}
