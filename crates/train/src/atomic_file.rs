//! A small file that is replaced as a whole, or not at all.

#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};
use std::path::{Path, is_separator};

use brisk_table::AtomicFile;

use crate::Error;

/// Writes `path` so that a reader, now or after a crash, finds either the old content or all of the new content. [`AtomicFile`] documents what a killed
/// process leaves, and when that is removed.
pub(crate) fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<AtomicFile>) -> io::Result<()>,
) -> Result<(), Error> {
    check_output(path)?;
    let failed = |cause| Error::Write { path: path.to_owned(), is_kept: path.exists(), cause };
    written(path, write).map_err(failed)
}

/// Checks that a file can be created at `path`: that `path` is not a folder, and that its parent folder exists.
pub(crate) fn check_output(path: &Path) -> Result<(), Error> {
    let names_folder = path.as_os_str().as_encoded_bytes().last().is_some_and(|&byte| is_separator(byte.into()));
    if names_folder || path.is_dir() {
        return Err(Error::OutputIsFolder { path: path.to_owned() });
    }
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        // If the metadata of a folder cannot be read, creating the file reports the error.
        Some(folder) if folder.try_exists().is_ok_and(|exists| !exists) || folder.is_file() => {
            Err(Error::NoOutputFolder { path: path.to_owned(), folder: folder.to_owned() })
        }
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
