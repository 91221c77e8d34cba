//! Where the checkpoints of a run are copied to, besides its folder.

#[cfg(feature = "remote")]
mod remote;

use std::fmt;
use std::ops::Range;
use std::path::Path;

use crate::error::Error;

/// The error of a store. Its message names the object.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// A folder of objects elsewhere, to which a run [copies](crate::Outputs::store) checkpoints, to resume on another machine.
///
/// With the feature `remote`, `RemoteFolder` of `brisk-table` is one: a folder at a URL. A store of your own implements four
/// methods, and a fifth if it can read a part of an object. Each of them may take long, and is called on a thread that training
/// does not wait for, unless each replica writes [a file of its own](crate::CheckpointFiles::OneAReplica).
///
/// # Errors
/// Those of the store, after it has tried as often as makes sense.
/// # Examples
/// A folder of another disk:
/// ```
/// use std::io::ErrorKind;
/// use std::path::{Path, PathBuf};
///
/// use brisk_train::{CheckpointStore, StoreError};
///
/// #[derive(Debug)]
/// struct Disk(PathBuf);
///
/// impl CheckpointStore for Disk {
///     fn name_of(&self, object: &str) -> String {
///         self.0.join(object).display().to_string()
///     }
///
///     fn put(&self, file: &Path, object: &str) -> Result<(), StoreError> {
///         let part = self.0.join(format!("{object}.part"));
///         std::fs::copy(file, &part)?;
///         Ok(std::fs::rename(part, self.0.join(object))?)
///     }
///
///     fn read(&self, object: &str) -> Result<Option<Vec<u8>>, StoreError> {
///         match std::fs::read(self.0.join(object)) {
///             Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
///             read => Ok(Some(read?)),
///         }
///     }
///
///     fn delete(&self, object: &str) -> Result<(), StoreError> {
///         match std::fs::remove_file(self.0.join(object)) {
///             Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
///             removed => Ok(removed?),
///         }
///     }
/// }
/// ```
pub trait CheckpointStore: fmt::Debug + Send + Sync {
    /// What messages call an object: its URL without secrets, for example. That of the folder itself for an empty name.
    fn name_of(&self, object: &str) -> String;

    /// Copies a file to an object, which appears, or replaces an old one, once all of it was written.
    fn put(&self, file: &Path, object: &str) -> Result<(), StoreError>;

    /// The bytes of an object; `None` if there is none.
    fn read(&self, object: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Some bytes of an object, as far as it has them, and its length in bytes; `None` if there is none. This method reads the
    /// whole object, unless a store does better.
    fn read_part(&self, object: &str, bytes: Range<u64>) -> Result<Option<(Vec<u8>, u64)>, StoreError> {
        Ok(self.read(object)?.map(|whole| {
            let [start, end] = [bytes.start, bytes.end].map(|at| whole.len().min(at as usize));
            (whole[start..end.max(start)].to_vec(), whole.len() as u64)
        }))
    }

    /// Removes an object. It is no error if there is none.
    fn delete(&self, object: &str) -> Result<(), StoreError>;
}

/// The object that a file of a run is copied to.
pub(crate) fn object_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The bytes of the object that a file of a run is copied to; `None` if there is none.
pub(crate) fn read_copy(store: &dyn CheckpointStore, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let object = object_of(path);
    store.read(&object).map_err(|cause| Error::Store { object: store.name_of(&object), cause })
}
