//! Names of temporary files: `.NAME.0123456789abcdef.tmp`, in the same folder as the final file `NAME`.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};

use crate::claim::Leftover;
use crate::target::folder_of;

/// How much of a long name is used in the temporary name, so that it stays within the 255 bytes that file systems allow.
const LONGEST_STEM_BYTES: usize = 200;

/// The possible names of temporary files for one target.
pub(crate) struct TempNames {
    folder: PathBuf,
    /// `.NAME.`
    stem: OsString,
}

impl TempNames {
    pub(crate) fn of(target: &Path) -> io::Result<Self> {
        let name = target.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))?;
        let mut stem = OsString::from(".");
        stem.push(shortened(name));
        stem.push(".");
        Ok(Self { folder: folder_of(target).to_owned(), stem })
    }

    /// Calls `create` with random names until one is free.
    pub(crate) fn draw<T>(&self, create: impl Fn(&Path) -> io::Result<Option<T>>) -> io::Result<(PathBuf, T)> {
        const N_TRIES: usize = 100;
        for _ in 0..N_TRIES {
            let mut name = self.stem.clone();
            // The keys of a `RandomState` come from the system's random number generator.
            name.push(format!("{:016x}.tmp", RandomState::new().hash_one(())));
            let path = self.folder.join(name);
            if let Some(created) = create(&path)? {
                return Ok((path, created));
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{N_TRIES} random names for a temporary file are all taken")))
    }

    /// Removes temporary files whose writers are gone. A file that cannot be removed is left for the next writer.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.filter_map(Result::ok) {
            if self.matches(&entry.file_name()) {
                drop(Leftover::seize(&entry.path()));
            }
        }
    }

    fn matches(&self, name: &OsStr) -> bool {
        let id = name.as_encoded_bytes().strip_prefix(self.stem.as_encoded_bytes());
        let Some(id) = id.and_then(|rest| rest.strip_suffix(b".tmp")) else { return false };
        is_random(id) || is_process_and_number(id)
    }
}

/// Removes the temporary files in `folder` whose writers are gone, if `is_target` is true of the name of the file that they were
/// to become. Writers of a file remove those of earlier writers of the same name; this is for names that are not written again,
/// such as those with a number. A file that cannot be removed is left.
///
/// # Examples
/// ```
/// let folder = tempfile::tempdir()?;
/// let left = folder.path().join(".model-7.safetensors.0123456789abcdef.tmp");
/// std::fs::write(&left, "half of it")?;
/// brisk_atomic_file::remove_leftovers(folder.path(), |name| name == "model-8.safetensors");
/// assert!(left.exists());
/// brisk_atomic_file::remove_leftovers(folder.path(), |name| name.starts_with("model-"));
/// assert!(!left.exists());
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn remove_leftovers(folder: &Path, is_target: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_str().and_then(target_of).is_some_and(&is_target) {
            drop(Leftover::seize(&entry.path()));
        }
    }
}

/// The name of the file that a temporary file is to become; `None` for other files.
fn target_of(name: &str) -> Option<&str> {
    let (target, id) = name.strip_prefix('.')?.strip_suffix(".tmp")?.rsplit_once('.')?;
    (is_random(id.as_bytes()) || is_process_and_number(id.as_bytes())).then_some(target)
}

fn is_random(id: &[u8]) -> bool {
    id.len() == 16 && id.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a name has the form `PROCESS-NUMBER`, which earlier versions gave to temporary files.
fn is_process_and_number(id: &[u8]) -> bool {
    let mut numbers = id.split(|&byte| byte == b'-');
    let mut is_number = || numbers.next().is_some_and(|part| !part.is_empty() && part.iter().all(u8::is_ascii_digit));
    is_number() && is_number() && numbers.next().is_none()
}

fn shortened(name: &OsStr) -> OsString {
    if name.len() <= LONGEST_STEM_BYTES {
        return name.to_owned();
    }
    let name = name.to_string_lossy();
    name[..name.floor_char_boundary(LONGEST_STEM_BYTES)].into()
}
