use std::collections::HashSet;

use serde_json::{Value, json};

use super::unique_json::Unique;
use crate::error::IndexError;

const VERSION: &str = "1";

/// The longest index that is read: enough for some 600,000 shards.
pub const MAX_INDEX_BYTES: u64 = 100_000_000;

/// The contents of `table.safetensors.index.json`: which files of its folder make up a table, in the order of their rows.
///
/// ```json
/// {
///   "metadata": { "brisk_shards": "1", "total_rows": 3, "total_size": 12400 },
///   "shards": [
///     { "file_name": "table-5bd1e995a1b2c3d4-00000.safetensors", "rows": 2, "bytes": 8264, "header_crc32": 2774183902 },
///     { "file_name": "table-5bd1e995a1b2c3d4-00001.safetensors", "rows": 1, "bytes": 4136, "header_crc32": 398741270 }
///   ]
/// }
/// ```
/// The checksum covers everything before a shard's data, so that replacing the file by another one of the same length is detected
/// on opening. Other entries are ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardIndex {
    /// The shards; there is at least one.
    pub shards: Vec<ShardEntry>,
}

/// A shard, as described by the index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardEntry {
    /// The name of a file in the folder of the index.
    pub file_name: String,
    /// The number of its rows.
    pub n_rows: u64,
    /// Its length in bytes.
    pub n_bytes: u64,
    /// The CRC-32 of its header, that is, of every byte before its data.
    pub header_crc32: u32,
}

impl ShardIndex {
    /// Parses an index, and checks that everything in it is consistent.
    ///
    /// # Errors
    /// One of [`IndexError`]'s variants, with what was found.
    /// # Examples
    /// ```
    /// use brisk_table::format::ShardIndex;
    ///
    /// let outside = br#"{
    ///   "metadata": { "brisk_shards": "1", "total_rows": 2, "total_size": 8264 },
    ///   "shards": [{ "file_name": "../elsewhere.safetensors", "rows": 2, "bytes": 8264, "header_crc32": 1 }]
    /// }"#;
    /// let error = ShardIndex::parse(outside).unwrap_err();
    /// let found = r#"shard 0 is "../elsewhere.safetensors""#;
    /// assert_eq!(error.to_string(), format!("{found}, expected the name of a file in the folder of the index"));
    /// ```
    pub fn parse(json: &[u8]) -> Result<Self, IndexError> {
        if json.len() as u64 > MAX_INDEX_BYTES {
            return Err(IndexError::TooLong { found: json.len() as u64, limit: MAX_INDEX_BYTES });
        }
        let Unique(index) = serde_json::from_slice(json).map_err(IndexError::Json)?;
        let metadata = &index["metadata"];
        if metadata["brisk_shards"] != VERSION {
            return Err(IndexError::Version { found: metadata["brisk_shards"].to_string(), expected: VERSION });
        }
        let listed = index["shards"].as_array().filter(|shards| !shards.is_empty());
        let listed = listed.ok_or_else(|| wrong("shards", "is not a list of at least one shard"))?;
        let shards: Vec<_> = listed.iter().enumerate().map(|(i, shard)| parse_entry(i, shard)).collect::<Result<_, _>>()?;

        let mut seen = HashSet::new();
        if let Some(shard) = shards.iter().position(|entry| !seen.insert(entry.file_name.as_str())) {
            return Err(IndexError::FileTwice { shard, file_name: shards[shard].file_name.clone() });
        }
        type Count = fn(&ShardEntry) -> u64;
        for (field, of) in [("total_rows", (|entry| entry.n_rows) as Count), ("total_size", |entry| entry.n_bytes)] {
            let claimed = metadata[field].as_u64().ok_or_else(|| wrong(format!("metadata.{field}"), "is not a count"))?;
            let found = shards.iter().map(|entry| u128::from(of(entry))).sum();
            if u128::from(claimed) != found {
                return Err(IndexError::Total { field, claimed, found });
            }
        }
        Ok(Self { shards })
    }

    /// The index as text; [`parse`](Self::parse) reads it back.
    pub(crate) fn encode(&self) -> String {
        let sum = |of: fn(&ShardEntry) -> u64| self.shards.iter().map(of).sum::<u64>();
        let index = json!({
            "metadata": { "brisk_shards": VERSION, "total_rows": sum(|e| e.n_rows), "total_size": sum(|e| e.n_bytes) },
            "shards": self.shards.iter().map(|entry| json!({
                "file_name": entry.file_name,
                "rows": entry.n_rows,
                "bytes": entry.n_bytes,
                "header_crc32": entry.header_crc32,
            })).collect::<Vec<_>>(),
        });
        format!("{index:#}\n")
    }
}

fn parse_entry(shard: usize, entry: &Value) -> Result<ShardEntry, IndexError> {
    let field = |name: &str| format!("shards[{shard}].{name}");
    let count = |name| entry[name].as_u64().ok_or_else(|| wrong(field(name), "is not a count"));
    let file_name = entry["file_name"].as_str().ok_or_else(|| wrong(field("file_name"), "is not a string"))?;
    if !is_plain_name(file_name) {
        return Err(IndexError::FileName { shard, found: file_name.to_owned() });
    }
    let sum = count("header_crc32")?;
    Ok(ShardEntry {
        file_name: file_name.to_owned(),
        n_rows: count("rows")?,
        n_bytes: count("bytes")?,
        header_crc32: u32::try_from(sum).map_err(|_| wrong(field("header_crc32"), "is more than 32 bits"))?,
    })
}

/// Whether this names a file in the same folder on every system, rather than a folder, drive or stream.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(|c: char| matches!(c, '/' | '\\' | ':') || c.is_control())
}

fn wrong(field: impl Into<String>, problem: &'static str) -> IndexError {
    IndexError::Field { field: field.into(), problem }
}
