#[cfg(feature = "import")]
use std::{fs::Metadata, path::Path, time::UNIX_EPOCH};

/// The file that a table was made from, as far as its metadata can identify it: enough to know whether the table is up to date.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceIdentity {
    /// The name of the file without its folder, so that both files can be moved together.
    pub file_name: String,
    /// Its length.
    pub n_bytes: u64,
    /// The modification time, in nanoseconds since 1970; 0 if the file system does not record it.
    pub modified_ns: u64,
}

#[cfg(feature = "import")]
impl SourceIdentity {
    /// The identity of the file at `path` with this metadata.
    pub(crate) fn new(path: &Path, metadata: &Metadata) -> Self {
        let since_1970 = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            file_name: file_name(path),
            n_bytes: metadata.len(),
            modified_ns: since_1970.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0),
        }
    }
}

/// The name of a file, as far as it can be printed.
#[cfg(feature = "import")]
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
