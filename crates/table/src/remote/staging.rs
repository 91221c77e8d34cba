//! The folder for files in transit to a server or from one.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cache::create_private;
use crate::error::Error;

/// Creates the folder of the options, or that of this user, if it does not exist.
pub(super) fn folder(option: Option<&Path>) -> Result<PathBuf, Error> {
    let Some(folder) = option else { return folder_of_user(&env::temp_dir()) };
    fs::create_dir_all(folder).map_err(Error::write(folder))?;
    Ok(folder.to_owned())
}

#[cfg(unix)]
fn folder_of_user(temp: &Path) -> Result<PathBuf, Error> {
    use std::os::unix::fs::MetadataExt;
    // A file belongs to the user who creates it.
    let create =
        || fs::create_dir_all(temp).and_then(|()| brisk_atomic_file::scratch_file(&temp.join("brisk-table"))?.metadata());
    let user = create().map_err(Error::write(temp))?.uid();
    own(&temp.join(format!("brisk-table-{user}")), user)
}

/// The system has a folder for temporary files for each user.
#[cfg(not(unix))]
fn folder_of_user(temp: &Path) -> Result<PathBuf, Error> {
    let folder = temp.join("brisk-table");
    create_private(&folder).map_err(Error::write(&folder))?;
    Ok(folder)
}

/// A folder that only this user can use. Another user may have created it before, or a link of its name.
#[cfg(unix)]
fn own(folder: &Path, user: u32) -> Result<PathBuf, Error> {
    use std::os::unix::fs::MetadataExt;
    let found = create_private(folder).and_then(|()| fs::symlink_metadata(folder)).map_err(Error::write(folder))?;
    if found.is_dir() && found.uid() == user {
        return Ok(folder.to_owned());
    }
    let problem = "it is not a folder of this user; set TMPDIR, or `RemoteOptions::staging`, to one that is";
    Err(Error::write(folder)(io::Error::new(io::ErrorKind::PermissionDenied, problem)))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn each_user_has_a_folder_that_others_cannot_use() {
        let temp = tempfile::tempdir().unwrap();
        let user = temp.path().metadata().unwrap().uid();
        let folder = folder_of_user(temp.path()).unwrap();
        assert_eq!(folder, temp.path().join(format!("brisk-table-{user}")));
        assert_eq!(folder.metadata().unwrap().mode() & 0o777, 0o700);
        assert_eq!(folder_of_user(temp.path()).unwrap(), folder, "it is there");
        assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 1, "and nothing else is");
    }

    #[test]
    fn a_folder_of_somebody_else_is_an_error_that_says_what_to_do() {
        let temp = tempfile::tempdir().unwrap();
        let user = temp.path().metadata().unwrap().uid();
        let [folder, link] = ["folder", "link"].map(|name| temp.path().join(name));
        fs::create_dir(&folder).unwrap();
        symlink(&folder, &link).unwrap();
        own(&folder, user).unwrap();
        for (path, user) in [(&folder, user + 1), (&link, user)] {
            let error = own(path, user).unwrap_err().to_string();
            assert!([path.to_str().unwrap(), "TMPDIR", "staging"].iter().all(|word| error.contains(word)), "{error}");
        }
    }
}
