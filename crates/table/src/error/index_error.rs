use brisk_atomic_file::printable;

/// Why bytes are not an index of shards.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum IndexError {
    /// It is longer than [`MAX_INDEX_BYTES`](crate::format::MAX_INDEX_BYTES).
    #[error("it is {found} bytes long, at most {limit} are read; is this an index of shards?")]
    TooLong { found: u64, limit: u64 },
    /// It is not JSON, or has a duplicate name.
    #[error("it is not the JSON of an index: {}", printable(&.0.to_string()))]
    Json(serde_json::Error),
    /// It was written by a later version, or is the index of something else.
    #[error(
        "`metadata.brisk_shards` is {found}, this version reads {expected:?}; is this an index of a table's shards, written by a later version?",
        found = printable(.found)
    )]
    Version { found: String, expected: &'static str },
    /// An entry is missing, or of the wrong type.
    #[error("`{field}` {problem}", field = printable(.field))]
    Field { field: String, problem: &'static str },
    /// A shard, counted from 0, outside the folder of the index.
    #[error("shard {shard} is {found:?}, expected the name of a file in the folder of the index", found = printable(.found))]
    FileName { shard: usize, found: String },
    /// A shard, counted from 0, with the file of an earlier one.
    #[error("shard {shard} is {file_name}, which an earlier shard is already", file_name = printable(.file_name))]
    FileTwice { shard: usize, file_name: String },
    /// The total `field`, `total_rows` or `total_size`, does not match what the shards add up to, `found`.
    #[error("`metadata.{field}` is {claimed}, its shards have {found}")]
    Total { field: &'static str, claimed: u64, found: u128 },
}
