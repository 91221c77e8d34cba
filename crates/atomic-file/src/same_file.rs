//! Whether two paths name one file.

use std::io;
use std::path::Path;

use crate::target::{folder_of, resolve};

/// Returns whether two paths name the same file: directly, through symbolic links, or as hard links. Files that do not exist yet
/// are compared by the folder and the name that they would have.
///
/// Programs use it to refuse an output that would replace an input. No file is opened for writing. A path whose metadata cannot
/// be read is treated as a different file.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let rows = folder.path().join("rows.csv");
/// std::fs::write(&rows, "1,2\n")?;
/// assert!(brisk_atomic_file::is_same_file(&rows, &folder.path().join("./rows.csv")));
/// assert!(!brisk_atomic_file::is_same_file(&rows, &folder.path().join("table.safetensors")));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    match (FileId::of(a), FileId::of(b)) {
        (Ok(a), Ok(b)) => a == b,
        (Err(_), Err(_)) => match (resolve(a), resolve(b)) {
            (Ok(a), Ok(b)) => {
                let folders = (FileId::of(folder_of(&a)), FileId::of(folder_of(&b)));
                a.file_name() == b.file_name() && matches!(folders, (Ok(a), Ok(b)) if a == b)
            }
            _ => false,
        },
        _ => false,
    }
}

/// The identity of an existing file, which no other file has.
#[derive(Debug, PartialEq, Eq)]
pub struct FileId(Id);

#[cfg(unix)]
type Id = (u64, u64);
#[cfg(windows)]
type Id = same_file::Handle;
#[cfg(not(any(unix, windows)))]
type Id = std::path::PathBuf;

impl FileId {
    /// The identity of the file at `path`, after following symbolic links.
    ///
    /// # Errors
    /// Those of the operating system, for example if there is no such file.
    pub fn of(path: &Path) -> io::Result<Self> {
        id_of(path).map(Self)
    }
}

/// Device and inode. The file is not opened, since opening a pipe may block.
#[cfg(unix)]
fn id_of(path: &Path) -> io::Result<Id> {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(windows)]
fn id_of(path: &Path) -> io::Result<Id> {
    same_file::Handle::from_path(path)
}

#[cfg(not(any(unix, windows)))]
fn id_of(path: &Path) -> io::Result<Id> {
    std::fs::canonicalize(path)
}
