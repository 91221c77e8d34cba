//! The file format: bytes in, byte ranges out. This module does not open, read or map files.
//!
//! A table is a [safetensors](https://github.com/huggingface/safetensors) file: eight bytes with the length of the header, a JSON
//! header, then the tensors without gaps. In addition, a table has the following tensors:
//!
//! | tensor | shape | dtype | |
//! | --- | --- | --- | --- |
//! | `features` | `[n, …]` | any | row-major; starts at a page boundary of the file |
//! | `labels` | `[n]` or `[n, k]` | any | |
//! | `categories` | `[n, c]` | `U32` | if rows have categories: their codes, see below |
//! | `weights` | `[n]` | `F32` | if rows have weights |
//! | `padding` | `[k]` | `U8` | zeros, where they are needed to align the next tensor |
//! | `checksums` | `[1 + blocks]` | `U32` | CRC-32 of the header, then of each 2²⁰ bytes of the tensors before this one |
//!
//! Its `__metadata__` has the entries `brisk_table` (the format version) and `label` as text, `columns` and `statistics` as JSON,
//! and for an imported table `source` (JSON) and `import` (how it was read, as text). If rows have several labels, `label_names`
//! (JSON) replaces `label`. Any safetensors file with `features` and `labels` is a table; the rest is optional, and tensors with
//! other names are ignored.
//!
//! A table with categories has `dictionaries` in its metadata, as JSON: `[{"name": "workclass", "values": ["Private", …]}, …]`,
//! one for each column of `categories`. The *k*-th value has code *k*, counted from 1; code 0 stands for a missing or unknown
//! value, and is in no dictionary. If labels are classes, `classes` is the JSON array of their names, ordered by class number
//! from 0. If an import filled in missing values, `imputed` has one number for each column except the indicators. The indicators
//! are the last columns; `indicators` lists the columns that they belong to, and they are 1 where such a column had a missing
//! value. A table that has only categories has `features` of shape `[n, 0]`.
//!
//! If an import changed what values mean, `settings` has what an import that matches the table needs, as JSON:
//! `{"missing_values": ["-999"], "offsets": {"time": 1.7e9}, "weight": "w", "orientation": "stored"}`. `missing_values` are cells
//! that counted as missing, `offsets` were subtracted from features or labels, `weight` is the column of `weights`, and images
//! were not turned upright. Each of them is optional.
//!
//! Headers are not trusted: see [`Layout::parse`].

mod encode;
mod json_entry;
mod layout;
mod metadata;
mod recorded_settings;
mod shard_index;
mod unique_json;

pub(crate) use encode::{encode, encoded_len};
pub use layout::{Layout, Tensor, header_bytes};
pub(crate) use metadata::TableMetadata;
#[cfg(feature = "import")]
pub(crate) use recorded_settings::RecordedSettings;
pub use shard_index::{MAX_INDEX_BYTES, ShardEntry, ShardIndex};
#[cfg(feature = "npy")]
pub(crate) use unique_json::Unique;

pub use crate::error::{FormatError, IndexError};

/// The tensors' names.
pub(crate) const FEATURES: &str = "features";
pub(crate) const LABELS: &str = "labels";
pub(crate) const CATEGORIES: &str = "categories";
pub(crate) const WEIGHTS: &str = "weights";
pub(crate) const PADDING: &str = "padding";
pub(crate) const CHECKSUMS: &str = "checksums";

/// Tensors start at a multiple of this, so that they start on a page of a memory map.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The number of bytes before the header, which hold its length.
pub(crate) const PREFIX_BYTES: usize = 8;

/// The longest header that is read, the same limit as in the reference implementation.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The largest number of dimensions of a tensor.
pub const MAX_RANK: usize = 32;
