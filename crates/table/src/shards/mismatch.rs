use crate::printable;

/// How a shard differs from what its index, or the first shard, says.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ShardMismatch {
    /// The file is not there.
    #[error("it is not there")]
    Missing,
    /// It has another length.
    #[error("it has {found} bytes, the index says {expected}")]
    Bytes {
        /// What the index says.
        expected: u64,
        /// What it has.
        found: u64,
    },
    /// It has more or fewer rows.
    #[error("it has {found} rows, the index says {expected}")]
    Rows {
        /// What the index says.
        expected: u64,
        /// What it has.
        found: u64,
    },
    /// It is a table, but another one.
    #[error("its header has checksum {found:08x}, the index says {expected:08x}: another file took its place")]
    Header {
        /// What the index says.
        expected: u32,
        /// What it has.
        found: u32,
    },
    /// Its rows are of another kind than those of the first shard.
    #[error(
        "its {part} is {found}, that of the first shard {expected}",
        expected = printable(.expected), found = printable(.found)
    )]
    Schema {
        /// What differs.
        part: &'static str,
        /// What the first shard has.
        expected: String,
        /// What this one has.
        found: String,
    },
}
