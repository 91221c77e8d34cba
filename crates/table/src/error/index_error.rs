use brisk_atomic_file::printable;

/// Why bytes are not an index of shards.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// It is longer than the limit.
    #[error("it is {found} bytes long, at most {limit} are read; is this an index of shards?")]
    TooLong {
        /// Its length.
        found: u64,
        /// [`MAX_INDEX_BYTES`](crate::format::MAX_INDEX_BYTES)
        limit: u64,
    },
    /// It is not JSON, or has a duplicate name.
    #[error("it is not the JSON of an index: {}", printable(&.0.to_string()))]
    Json(serde_json::Error),
    /// It was written by a later version, or is the index of something else.
    #[error(
        "`metadata.brisk_shards` is {found}, this version reads {expected:?}; is this an index of a table's shards, written by a later version?",
        found = printable(.found)
    )]
    Version {
        /// What was found.
        found: String,
        /// What this crate writes.
        expected: &'static str,
    },
    /// An entry is missing, or of the wrong type.
    #[error("`{field}` {problem}", field = printable(.field))]
    Field {
        /// The entry.
        field: String,
        /// The problem.
        problem: &'static str,
    },
    /// A shard outside the folder of the index.
    #[error("shard {shard} is {found:?}, expected the name of a file in the folder of the index", found = printable(.found))]
    FileName {
        /// The shard, counted from 0.
        shard: usize,
        /// What was found.
        found: String,
    },
    /// Two shards with the same file.
    #[error("shard {shard} is {file_name}, which an earlier shard is already", file_name = printable(.file_name))]
    FileTwice {
        /// The second of them, counted from 0.
        shard: usize,
        /// The file of both.
        file_name: String,
    },
    /// A total that does not match the shards.
    #[error("`metadata.{field}` is {claimed}, its shards have {found}")]
    Total {
        /// `total_rows` or `total_size`
        field: &'static str,
        /// What was found.
        claimed: u64,
        /// What the shards add up to.
        found: u128,
    },
}
