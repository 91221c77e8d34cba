//! A file that is replaced as a whole, or not at all.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::claim::create_claimed_with;
use crate::permissions::Mode;
use crate::rename::{PublishError, replace};
use crate::target::{folder_of, resolve};
use crate::temp_name::TempNames;

/// Writes a file that appears at its path as a whole, or not at all.
///
/// The bytes go to a temporary file in the same folder. [`publish`](Self::publish) syncs it to disk and renames it, so that a
/// reader, now or after a crash, finds the old content or all of the new. Dropped without `publish`, or on an error, the
/// temporary file is removed and the path is as it was.
///
/// A process that is killed leaves its temporary file, `.NAME.0123456789abcdef.tmp`. The next `AtomicFile` for the same path
/// removes it. It recognises the files of running writers, which hold an advisory lock (on Windows, an open handle), and leaves
/// them alone. On a file system without locks nothing is removed; on a network file system whose locks are local to one host, do
/// not write one path from several hosts at a time.
///
/// - **Symbolic links** are followed: the file that the link points to is replaced, and the link stays.
/// - **Hard links** are not: `path` gets a new file, and the other names keep the old content.
/// - **Permissions** on Unix are those of the file that is replaced; `path` gets a new owner, group and extended attributes.
/// - **Relative paths** are resolved by [`create`](Self::create): a later change of the working directory has no effect.
/// - **Folders, devices, pipes and sockets** are refused.
/// - Of several writers of one path, the last to publish wins.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("results.json");
/// use std::io::Write;
///
/// use brisk_atomic_file::AtomicFile;
///
/// let mut file = AtomicFile::create(&path)?;
/// file.write_all(b"{}")?;
/// assert!(!path.exists());
/// file.publish()?;
/// assert_eq!(std::fs::read(&path)?, b"{}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Writes are not buffered; for many small ones use a [`BufWriter`](std::io::BufWriter), and publish what its `into_inner`
/// returns.
#[derive(Debug)]
pub struct AtomicFile {
    path: PathBuf,
    /// The file to replace: `path`, or the target of the link at `path`. Absolute, as is `temp_path`.
    target: PathBuf,
    /// The permissions of the file to replace.
    mode: Option<Mode>,
    temp_path: PathBuf,
    /// `None` once published.
    file: Option<File>,
}

impl AtomicFile {
    /// Creates a file that [`publish`](Self::publish) puts at `path`, and removes what killed writers of that path left behind.
    ///
    /// # Errors
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if `path` names no file, or something other than a regular file; otherwise
    /// what the operating system reports.
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::create_impl(path.as_ref(), Leftovers::Remove)
    }

    /// Like [`create`](Self::create), but does not look for leftovers: for a path that no other writer has ever used, such as a
    /// random name.
    pub fn create_first(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::create_impl(path.as_ref(), Leftovers::Keep)
    }

    fn create_impl(path: &Path, leftovers: Leftovers) -> io::Result<Self> {
        let target = std::path::absolute(resolve(path)?)?;
        let names = TempNames::of(&target)?;
        if leftovers == Leftovers::Remove {
            names.sweep();
        }
        let mode = Mode::of(&target);
        let options = Mode::while_written(mode);
        let (temp_path, file) = names.draw(|path| create_claimed_with(path, &options))?;
        Ok(Self { path: path.to_owned(), target, mode, temp_path, file: Some(file) })
    }

    /// The path that was given to [`create`](Self::create).
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the file durable and puts it in its place: first its content, then its name.
    ///
    /// # Errors
    /// [`PublishError::Io`] if the disk fails; then the path is unchanged, and the temporary file has been removed.
    /// [`PublishError::Kept`] if the file is complete but the old one cannot be replaced, as on Windows while a program has it
    /// mapped, even after retrying for a second; the file is kept under the name that the error gives.
    pub fn publish(mut self) -> Result<(), PublishError> {
        let failed = |cause| PublishError::Io { path: self.path.clone(), cause };
        let mode = self.mode;
        let finished = |file: &File| mode.map_or(Ok(()), |mode| mode.set(file)).and_then(|()| file.sync_all());
        self.file.as_ref().map_or(Ok(()), finished).map_err(failed)?;
        replace(&self.temp_path, &self.target)?;
        // Closed, and thereby unlocked, only now: another writer would have taken an unlocked file for a leftover before the
        // rename.
        self.file = None;
        sync_folder(&self.target).map_err(|cause| PublishError::Io { path: self.path.clone(), cause })
    }

    fn file(&mut self) -> &mut File {
        self.file.as_mut().expect("the file is open until it is published, which takes `self`")
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

/// Reads what was written so far.
impl Read for AtomicFile {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.file().read(bytes)
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file().seek(to)
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Closed first, since Windows removes a file only once all handles to it are closed.
            drop(file);
            // If this fails, the next writer of the path removes it.
            let _ = fs::remove_file(&self.temp_path);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leftovers {
    Remove,
    Keep,
}

/// Makes a rename in the folder of `path` durable, where the system and the file system offer that and the folder may be read.
///
/// # Errors
/// Those of the operating system.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(folder_of(path)).and_then(|folder| folder.sync_all()) {
        Err(error) if matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported) => Ok(()),
        synced => synced,
    }
}
