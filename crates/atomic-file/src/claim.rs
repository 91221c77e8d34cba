//! Which temporary files belong to running writers.
//!
//! A writer holds an advisory lock on its file for as long as it lives, and the system releases the locks of a killed process.
//! Windows locks are mandatory and would keep readers from a file that has just been published, so there the open handle serves
//! instead: a file can be opened for exclusive use only once its writer has closed it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Creates a file that no sweep removes while it is open. `None` if the name is taken, or if a sweep got to the file between its
/// creation and its lock; try another name then.
///
/// # Errors
/// Those of the operating system.
pub fn create_claimed(path: &Path) -> io::Result<Option<File>> {
    create_claimed_with(path, &OpenOptions::new())
}

/// The same, with other permissions.
pub(crate) fn create_claimed_with(path: &Path, options: &OpenOptions) -> io::Result<Option<File>> {
    let file = match options.clone().read(true).write(true).create_new(true).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        file => file?,
    };
    #[cfg(not(windows))]
    if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
        return Ok(None);
    }
    // Any other error means that the file system has no locks. Sweeps cannot lock the file either, and leave it.
    match is_at(&file, path) {
        Ok(is_there) => Ok(is_there.then_some(file)),
        Err(error) => {
            let _ = fs::remove_file(path);
            Err(error)
        }
    }
}

/// A file whose writer is gone. It is removed when this value is dropped; until then no other sweep touches it.
#[derive(Debug)]
pub struct Leftover {
    path: PathBuf,
    _file: File,
}

impl Leftover {
    /// Claims the file at `path`. `None` if its writer is still running, or if that cannot be determined.
    pub fn seize(path: &Path) -> Option<Self> {
        if !fs::symlink_metadata(path).ok()?.is_file() {
            return None;
        }
        let file = open_exclusively(path).ok()?;
        // It may have been published or removed before it was locked.
        is_at(&file, path).ok()?.then(|| Self { path: path.to_owned(), _file: file })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        // Removed before its lock is released. Windows removes it by closing it.
        if cfg!(not(windows)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(not(windows))]
fn open_exclusively(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Opens the file if no other handle to it is open; closing it removes it.
#[cfg(windows)]
fn open_exclusively(path: &Path) -> io::Result<File> {
    use std::os::windows::fs::OpenOptionsExt;
    const DELETE: u32 = 0x0001_0000;
    const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
    OpenOptions::new().access_mode(DELETE).share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE).open(path)
}

/// Whether `path` still names this open file.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    match fs::symlink_metadata(path) {
        Ok(found) => {
            let open = file.metadata()?;
            Ok((found.dev(), found.ino()) == (open.dev(), open.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether `path` still names this open file. Names are random, so a file of that name is that file.
#[cfg(not(unix))]
fn is_at(_: &File, path: &Path) -> io::Result<bool> {
    path.try_exists()
}
