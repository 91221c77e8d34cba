use std::fs::Metadata;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// What a table was made from, as far as a glance at the file system tells: enough to know that it need not be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceIdentity {
    /// The file's name, without its folder: moving both files together changes nothing.
    pub file_name: String,
    /// Its length.
    pub n_bytes: u64,
    /// When it was last written, in nanoseconds since 1970; 0 where the file system does not say.
    pub modified_ns: u64,
}

impl SourceIdentity {
    /// The identity of the file at `path`, whose metadata the caller has at hand.
    pub fn new(path: &Path, metadata: &Metadata) -> Self {
        let since_1970 = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        Self {
            file_name: path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            n_bytes: metadata.len(),
            modified_ns: since_1970.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0),
        }
    }
}
