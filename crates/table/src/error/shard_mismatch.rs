use brisk_atomic_file::printable;

/// How a shard differs from the index, or from the first shard.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardMismatch {
    /// The file does not exist.
    #[error("it is not there")]
    Missing,
    /// The file has another length.
    #[error("it has {found} bytes, the index says {expected}")]
    Bytes {
        /// The length in the index.
        expected: u64,
        /// The length of the file.
        found: u64,
    },
    /// It has another number of rows.
    #[error("it has {found} rows, the index says {expected}")]
    Rows {
        /// The number in the index.
        expected: u64,
        /// The number in the file.
        found: u64,
    },
    /// It is a table, but another one.
    #[error("its header has checksum {found:08x}, the index says {expected:08x}: another file took its place")]
    Header {
        /// The checksum in the index.
        expected: u32,
        /// The checksum of the file.
        found: u32,
    },
    /// The schema of its rows differs from that of the first shard.
    #[error(
        "its {part} is {found}, that of the first shard {expected}",
        expected = printable(.expected), found = printable(.found)
    )]
    Schema {
        /// The property that differs.
        part: &'static str,
        /// Its value in the first shard.
        expected: String,
        /// Its value in this shard.
        found: String,
    },
}
