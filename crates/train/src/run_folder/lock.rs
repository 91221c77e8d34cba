//! The lock that keeps a second run out of a run's folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;

/// `run.lock` in a run's folder, locked by the operating system for as long as this value lives: a process that is killed leaves
/// at most the file, which the next run takes over.
#[derive(Debug)]
pub(crate) struct RunLock {
    path: PathBuf,
    file: File,
    is_locked: bool,
}

impl RunLock {
    /// Takes the lock of the run in `folder`. Waits briefly, since a killed process may hold it for a moment longer.
    pub(crate) fn take(folder: &Path) -> Result<Self, Error> {
        const PATIENCE: Duration = Duration::from_secs(2);
        let since = Instant::now();
        loop {
            match Self::try_take(folder) {
                Err(Error::RunInUse { .. }) if since.elapsed() < PATIENCE => thread::sleep(Duration::from_millis(20)),
                taken => return taken,
            }
        }
    }

    fn try_take(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("run.lock");
        let failed = Error::io(&path, "lock the run's folder");
        loop {
            let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(&failed)?;
            let is_locked = match file.try_lock() {
                Ok(()) => true,
                Err(TryLockError::WouldBlock) => {
                    let mut holder = String::new();
                    // On Windows the lock also keeps others from reading the file.
                    let _ = file.read_to_string(&mut holder);
                    let holder = Some(holder.trim().to_owned()).filter(|holder| !holder.is_empty());
                    return Err(Error::RunInUse { path: folder.to_owned(), holder });
                }
                // On a file system without locks the folder is not protected, which is no reason to refuse the run.
                Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => false,
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            };
            // The previous holder may have removed the file between the opening and the locking: then this lock is on a file that
            // no other process finds.
            if is_locked && !is_still_at(&file, &path).map_err(&failed)? {
                continue;
            }
            let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| writeln!(file, "{}", this_process()));
            written.map_err(&failed)?;
            return Ok(Self { path: path.clone(), file, is_locked });
        }
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // On Unix the file is removed while the lock is held, so that it is no other run's; on other systems it stays, unlocked.
        if cfg!(unix) && self.is_locked && is_still_at(&self.file, &self.path).unwrap_or(false) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether `path` is the name of this open file.
#[cfg(unix)]
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;

    let opened = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// On other systems the file is never removed.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// `process 4711 on host7`, for the error message in other processes.
fn this_process() -> String {
    let process = std::process::id();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    match host.as_deref().map(str::trim).filter(|host| !host.is_empty()) {
        Some(host) => format!("process {process} on {host}"),
        None => format!("process {process}"),
    }
}
