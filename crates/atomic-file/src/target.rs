//! Which file an output path refers to.

use std::fs::{self, File, FileType};
use std::io::{self, Read};
use std::path::{Path, PathBuf, is_separator};

/// The file to replace: `path` itself, or the target of a link, which need not exist yet.
pub(crate) fn resolve(path: &Path) -> io::Result<PathBuf> {
    /// The limit of Linux for one path.
    const MAX_LINKS: usize = 40;
    if path.as_os_str().is_empty() {
        return Err(invalid("the path names no file"));
    }
    if let Some(found) = special_file(path) {
        return Err(invalid(format!("is {found}, expected a file")));
    }
    if path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(byte.into())) {
        return Err(invalid("the path names a folder, expected a file"));
    }
    let mut target = path.to_owned();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&target) {
            Ok(link) => target = folder_of(&target).join(link),
            // Not a link, or nothing yet.
            Err(_) => return Ok(target),
        }
    }
    Err(invalid(format!("more than {MAX_LINKS} symbolic links follow each other")))
}

pub(crate) fn invalid(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, problem.into())
}

/// Describes what is at `path`, after following links, if it is not a regular file and therefore cannot be replaced by one.
pub fn special_file(path: &Path) -> Option<&'static str> {
    let kind = fs::metadata(path).ok()?.file_type();
    (!kind.is_file()).then(|| name_of(kind))
}

/// Opens a file to read it. A folder, pipe, socket or device is an error and is not opened, since that may block, or reading may
/// never end.
///
/// # Errors
/// Those of the operating system; [`io::ErrorKind::InvalidInput`] for anything but a regular file.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// let error = brisk_atomic_file::open_regular_file(folder.path()).unwrap_err();
/// assert!(error.to_string().contains("is a folder, expected a file"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn open_regular_file(path: &Path) -> io::Result<File> {
    match special_file(path) {
        Some(found) => Err(invalid(format!("is {found}, expected a file"))),
        None => File::open(path),
    }
}

/// The bytes of a file that [`open_regular_file`] opens.
///
/// # Errors
/// As for [`open_regular_file`].
pub fn read_regular_file(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_regular_file(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(unix)]
fn name_of(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match kind {
        _ if kind.is_dir() => "a folder",
        _ if kind.is_fifo() => "a pipe",
        _ if kind.is_socket() => "a socket",
        _ => "a device",
    }
}

#[cfg(not(unix))]
fn name_of(kind: FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { "a device" }
}

/// The parent folder of a path, which is `.` for a bare file name.
pub(crate) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
