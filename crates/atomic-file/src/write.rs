use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf, is_separator};

use crate::atomic_file::AtomicFile;
use crate::rename::shown;
use crate::target::{folder_of, invalid, resolve};

/// Why a file cannot be written as a whole.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum WriteError {
    /// The path is that of a folder.
    #[error("{}: names a folder, expected a file; add the name of a file in it", shown(path))]
    IsFolder { path: PathBuf },
    /// The folder of the file, or of the file that a link at its path names, does not exist.
    #[error("{}: there is no folder {}; create it first, or write elsewhere", shown(path), shown(folder))]
    NoFolder { path: PathBuf, folder: PathBuf },
    /// No file can be at the path: it is a device, for example, longer than the file system allows, or in a read-only folder.
    #[error("{}: cannot be written: {cause}", shown(path))]
    Refused { path: PathBuf, cause: io::Error },
    /// Writing failed, for example because the disk is full: `cause` is the error of the system, or of the function that wrote
    /// the content. An earlier file at this path is unchanged; `is_kept` says whether there is one.
    #[error("{}: writing failed: {cause}; {}", shown(path), left(*is_kept, cause))]
    Failed { path: PathBuf, is_kept: bool, cause: io::Error },
}

/// Writes `path` so that a reader, now or after a crash, finds either the old content or all of the new content. [`AtomicFile`]
/// documents what a killed process leaves, and when that is removed.
///
/// # Errors
/// [`WriteError`], also if `write` returns an error. Then an existing file is unchanged, and the temporary file has been removed.
/// # Examples
/// ```
/// use std::io::Write;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("log.txt");
/// brisk_atomic_file::write_atomically(&path, |file| writeln!(file, "{} rows", 28))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "28 rows\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut BufWriter<AtomicFile>) -> io::Result<()>) -> Result<(), WriteError> {
    check_path(path)?;
    let failed = |cause| WriteError::Failed { path: path.to_owned(), is_kept: path.exists(), cause };
    written(path, write).map_err(failed)
}

/// Checks that [`write_atomically`] can create a file at `path`, by creating and removing its temporary file. What is at `path`
/// does not change.
///
/// # Errors
/// [`WriteError::IsFolder`], [`WriteError::NoFolder`], [`WriteError::Refused`].
pub fn check_output(path: &Path) -> Result<(), WriteError> {
    check_path(path)?;
    AtomicFile::create_first(path).map(drop).map_err(|cause| WriteError::Refused { path: path.to_owned(), cause })
}

fn check_path(path: &Path) -> Result<(), WriteError> {
    let names_folder = path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(byte.into()));
    if names_folder || path.is_dir() {
        return Err(WriteError::IsFolder { path: path.to_owned() });
    }
    let refused = |cause| WriteError::Refused { path: path.to_owned(), cause };
    let target = resolve(path).map_err(refused)?;
    let folder = folder_of(&target);
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => return Err(refused(invalid(format!("{} is a file, expected a folder", shown(folder))))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(WriteError::NoFolder { path: path.to_owned(), folder: folder.to_owned() });
        }
        _ => {}
    }
    match fs::symlink_metadata(&target) {
        // A name that is too long, for example, which the shorter one of the temporary file is not.
        Err(cause) if cause.kind() != ErrorKind::NotFound => Err(refused(cause)),
        _ => Ok(()),
    }
}

fn written(path: &Path, write: impl FnOnce(&mut BufWriter<AtomicFile>) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(256 * 1024, AtomicFile::create(path)?);
    let result = write(&mut writer).and_then(|()| writer.flush());
    // Dropping the writer would write what has failed again.
    let (file, _) = writer.into_parts();
    result.and_then(|()| Ok(file.publish()?))
}

fn left(is_kept: bool, cause: &io::Error) -> String {
    let what = if is_kept { "the file from before is still there" } else { "nothing was left behind" };
    let full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    if full { format!("{what}; make room on the disk, or write elsewhere") } else { what.to_owned() }
}
