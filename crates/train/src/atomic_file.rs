//! A small file that is replaced as a whole, or not at all.

#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};
use std::path::Path;

use brisk_table::AtomicFile;

use crate::Error;

/// Writes `path` so that a reader, now or after a crash, finds either the old content or all of the new. See [`AtomicFile`] for what a killed
/// process leaves, and when that is removed.
pub(crate) fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<AtomicFile>) -> io::Result<()>,
) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), is_kept: path.exists(), source };
    written(path, write).map_err(failed)
}

fn written(path: &Path, write: impl FnOnce(&mut BufWriter<AtomicFile>) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(256 * 1024, AtomicFile::create(path)?);
    let result = write(&mut writer).and_then(|()| writer.flush());
    // Dropping the writer would write what has failed again.
    let (file, _) = writer.into_parts();
    result.and_then(|()| Ok(file.publish()?))
}
