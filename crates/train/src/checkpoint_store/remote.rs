use std::ops::Range;
use std::path::Path;

use brisk_table::RemoteFolder;

use super::{CheckpointStore, StoreError};

/// A folder at a URL.
impl CheckpointStore for RemoteFolder {
    fn name_of(&self, object: &str) -> String {
        self.url_of(object)
    }

    fn put(&self, file: &Path, object: &str) -> Result<(), StoreError> {
        Ok(Self::put(self, file, object)?)
    }

    fn read(&self, object: &str) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(Self::read(self, object)?)
    }

    fn read_part(&self, object: &str, bytes: Range<u64>) -> Result<Option<(Vec<u8>, u64)>, StoreError> {
        Ok(Self::read_part(self, object, bytes)?)
    }

    fn delete(&self, object: &str) -> Result<(), StoreError> {
        Ok(Self::delete(self, object)?)
    }
}
