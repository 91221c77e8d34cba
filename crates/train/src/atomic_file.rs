//! A file that is there whole, or not at all.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// Writes `path` so that whoever opens it, now or after a crash, finds either what stood there before or all of the new content.
///
/// The bytes go to a sibling file, `.NAME.PROCESS-NUMBER.tmp`, which is synced and renamed; then the folder is synced. On an error
/// the sibling is removed.
pub(crate) fn write_atomically(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), Error> {
    let failed = |source| Error::Write { path: path.to_owned(), is_kept: path.exists(), source };
    let temp_path = temp_path(path).map_err(failed)?;
    let file = OpenOptions::new().write(true).create_new(true).open(&temp_path).map_err(failed)?;
    let result = written(file, write).and_then(|()| fs::rename(&temp_path, path));
    if result.is_err() {
        // There is nobody to tell: the error that led here is the one that counts.
        let _ = fs::remove_file(&temp_path);
    }
    result.and_then(|()| sync_folder(path)).map_err(failed)
}

/// Closes the file, too, before it is renamed, as Windows wants it.
fn written(file: File, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut writer = BufWriter::with_capacity(256 * 1024, file);
    let result = write(&mut writer).and_then(|()| writer.flush());
    // Taken apart rather than dropped: dropping would try the failed bytes again.
    let (file, _) = writer.into_parts();
    result.and_then(|()| file.sync_all())
}

/// In the same folder, hence on the same disk.
fn temp_path(path: &Path) -> io::Result<PathBuf> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    let mut temp = OsString::from(".");
    temp.push(name);
    temp.push(format!(".{}-{}.tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)));
    Ok(path.with_file_name(temp))
}

/// A rename is durable once its folder is synced; where folders cannot be opened, the system has no such notion.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
