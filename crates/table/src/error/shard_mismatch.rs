use brisk_atomic_file::printable;

/// How a shard differs from the index, or from the first shard.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum ShardMismatch {
    /// The file does not exist.
    #[error("it is not there")]
    Missing,
    /// The file has another length than the index says.
    #[error("it has {found} bytes, the index says {expected}")]
    Bytes { expected: u64, found: u64 },
    /// It has another number of rows than the index says.
    #[error("it has {found} rows, the index says {expected}")]
    Rows { expected: u64, found: u64 },
    /// It is a table, but another one: the checksum of its header is not that of the index.
    #[error("its header has checksum {found:08x}, the index says {expected:08x}: another file took its place")]
    Header { expected: u32, found: u32 },
    /// The property `part` of its rows differs from that of the first shard.
    #[error(
        "its {part} is {found}, that of the first shard {expected}",
        expected = printable(.expected), found = printable(.found)
    )]
    Schema { part: &'static str, expected: String, found: String },
}
