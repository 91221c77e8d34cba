use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use crate::target::resolve;
use crate::temp_name::TempNames;

/// Creates an empty file on the disk of `beside`. The system removes it once it is closed, even if the process is killed.
///
/// # Errors
/// Those of the operating system.
pub fn scratch_file(beside: &Path) -> io::Result<File> {
    let names = TempNames::of(&resolve(beside)?)?;
    let (path, file) = names.draw(|path| match options().open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        file => file.map(Some),
    })?;
    if cfg!(not(windows)) {
        // An open file without a name is removed when it is closed.
        std::fs::remove_file(path)?;
    }
    Ok(file)
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
        options.share_mode(0).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    }
    options
}
