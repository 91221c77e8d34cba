//! The permissions that a new file takes over from the one that it replaces.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// On Unix: read, write and execute, each for owner, group and others.
#[cfg(unix)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mode(u32);

#[cfg(unix)]
impl Mode {
    /// Those of an existing file.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::PermissionsExt;
        std::fs::metadata(path).ok().map(|found| Self(found.permissions().mode() & 0o777))
    }

    /// Options for a file that is being written: no user may read it who may not read the finished one.
    pub(crate) fn while_written(mode: Option<Self>) -> OpenOptions {
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = OpenOptions::new();
        if let Some(Self(mode)) = mode {
            options.mode(mode | 0o600);
        }
        options
    }

    /// Sets the permissions of a finished file, unless it has them.
    pub(crate) fn set(self, file: &File) -> io::Result<()> {
        use std::os::unix::fs::PermissionsExt;
        let Self(mode) = self;
        if file.metadata()?.permissions().mode() & 0o777 == mode {
            return Ok(());
        }
        file.set_permissions(PermissionsExt::from_mode(mode))
    }
}

/// Other systems have none.
#[cfg(not(unix))]
#[derive(Debug, Clone, Copy)]
pub(crate) enum Mode {}

#[cfg(not(unix))]
impl Mode {
    pub(crate) fn of(_: &Path) -> Option<Self> {
        None
    }

    pub(crate) fn while_written(_: Option<Self>) -> OpenOptions {
        OpenOptions::new()
    }

    pub(crate) fn set(self, _: &File) -> io::Result<()> {
        match self {}
    }
}
