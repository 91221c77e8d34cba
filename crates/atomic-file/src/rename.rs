//! How a finished file gets its name, and what happens if it cannot.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::target::folder_of;

/// Why [`AtomicFile::publish`](crate::AtomicFile::publish) failed.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum PublishError {
    /// The new file could not be written or renamed. The path is unchanged, and the temporary file has been removed.
    #[error("{path}: cannot be written: {cause}", path = shown(.path))]
    Io { path: PathBuf, cause: io::Error },
    /// The new file is complete, but the old one cannot be replaced, because a program holds it or because of its permissions.
    /// `path` is the one after following symbolic links, `kept` that of the new file.
    #[error(
        "{path} cannot be replaced: {cause}; the new file is complete and was kept as {kept}: close the programs that use the old one, then rename it",
        path = shown(.path), kept = shown(.kept)
    )]
    Kept { path: PathBuf, kept: PathBuf, cause: io::Error },
}

/// The error from the operating system, without the path.
impl From<PublishError> for io::Error {
    fn from(error: PublishError) -> Self {
        match error {
            PublishError::Io { cause, .. } => cause,
            PublishError::Kept { ref cause, .. } => Self::new(cause.kind(), error),
        }
    }
}

/// A path in a message, without control characters, which could change the lines and colours of a terminal.
pub(crate) fn shown(path: &Path) -> String {
    if path.as_os_str().is_empty() {
        return "\"\"".to_owned();
    }
    path.to_string_lossy().replace(char::is_control, "\u{fffd}")
}

/// Renames `temp` to `target`. After [`PublishError::Io`], `temp` has its old name.
///
/// # Errors
/// As for [`AtomicFile::publish`](crate::AtomicFile::publish).
pub fn replace(temp: &Path, target: &Path) -> Result<(), PublishError> {
    Renaming { rename: &|from, to| fs::rename(from, to), is_contended: &is_contended, wait: &thread::sleep }.replace(temp, target)
}

/// Whether another program, which may be about to release it, keeps the old file from being replaced.
///
/// Unix replaces files that are open. Windows refuses while another writer renames onto the same path, which passes, and while a
/// reader has the file mapped or opened without sharing, which may take as long as the reader runs.
fn is_contended(error: &io::Error) -> bool {
    const ACCESS_DENIED: i32 = 5;
    const SHARING_VIOLATION: i32 = 32;
    const LOCK_VIOLATION: i32 = 33;
    const USER_MAPPED_FILE: i32 = 1224;
    let codes = [ACCESS_DENIED, SHARING_VIOLATION, LOCK_VIOLATION, USER_MAPPED_FILE];
    cfg!(windows) && error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// The inputs of the decisions below, passed in so that they can be tested on every system.
struct Renaming<'a> {
    rename: &'a dyn Fn(&Path, &Path) -> io::Result<()>,
    is_contended: &'a dyn Fn(&io::Error) -> bool,
    wait: &'a dyn Fn(Duration),
}

impl Renaming<'_> {
    fn replace(&self, temp: &Path, target: &Path) -> Result<(), PublishError> {
        /// Doubled from 1 ms up to 64 ms, the waits add up to 1023 ms: as many tries as fit, since several writers may race.
        const N_RETRIES: u32 = 21;
        let mut renamed = (self.rename)(temp, target);
        for retry in 0..N_RETRIES {
            if !renamed.as_ref().is_err_and(self.is_contended) {
                break;
            }
            (self.wait)(Duration::from_millis(1 << retry.min(6)));
            renamed = (self.rename)(temp, target);
        }
        let Err(cause) = renamed else { return Ok(()) };
        let (path, kept) = (target.to_owned(), self.is_worth_keeping(&cause).then(|| self.keep(temp, target)));
        match kept {
            Some(Ok(kept)) => Err(PublishError::Kept { path, kept, cause }),
            Some(Err(_)) | None => Err(PublishError::Io { path, cause }),
        }
    }

    /// Whether the error concerns only the old file: it is in use, a mount point, or belongs to another user.
    fn is_worth_keeping(&self, error: &io::Error) -> bool {
        use io::ErrorKind::{PermissionDenied, ResourceBusy};
        (self.is_contended)(error) || matches!(error.kind(), PermissionDenied | ResourceBusy)
    }

    /// Renames `temp` to `NAME.new`, or to `NAME.2.new` and so on if that name is taken.
    fn keep(&self, temp: &Path, target: &Path) -> io::Result<PathBuf> {
        const N_TRIES: usize = 1000;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        for number in 1..=N_TRIES {
            let mut new_name = OsString::from(name);
            new_name.push(if number == 1 { ".new".to_owned() } else { format!(".{number}.new") });
            let kept = folder_of(target).join(new_name);
            // An empty file reserves the name, since a rename would replace an existing file.
            match OpenOptions::new().write(true).create_new(true).open(&kept) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                reserved => drop(reserved?),
            }
            return match (self.rename)(temp, &kept) {
                Ok(()) => Ok(kept),
                Err(error) => {
                    let _ = fs::remove_file(&kept);
                    Err(error)
                }
            };
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }
}
