use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use brisk_table::{ImportOptions, ImportReport, Table, import_with_progress};

use brisk_train::Error as TrainError;

use crate::error::Error;

/// Imports a source into a table in memory. Its file is in the system's folder for temporary files, and is removed before this
/// returns.
///
/// # Errors
/// [`Error::Table`], [`Error::Io`](brisk_train::Error::Io).
pub(super) fn import_to_memory(
    path: &Path,
    options: &ImportOptions,
    progress: &mut dyn FnMut(),
) -> Result<(Table, ImportReport), Error> {
    let folder = ScratchFolder::new()?;
    let dest = folder.0.join("rows.safetensors");
    let report = import_with_progress(path, &dest, options, |_| progress())?;
    Ok((Table::open(&dest)?, report))
}

/// A folder that only this user can read, and that is removed when this is dropped.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Result<Self, Error> {
        #[cfg_attr(not(unix), expect(unused_mut, reason = "other systems have no modes"))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        for number in 0_u64.. {
            let path = std::env::temp_dir().join(format!("brisk-{}-{number}", std::process::id()));
            match builder.create(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(cause) => return Err(TrainError::Io { path, action: "create", cause }.into()),
            }
        }
        unreachable!("there are fewer folders than numbers")
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // The system removes what remains.
        _ = fs::remove_dir_all(&self.0);
    }
}
