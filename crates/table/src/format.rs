//! The file format: bytes in, byte ranges out. Nothing here opens, reads or maps a file.
//!
//! A table is a [safetensors](https://github.com/huggingface/safetensors) file: eight bytes that say how long the header is, a JSON
//! header, then the tensors without gaps. On top of that a table promises:
//!
//! | tensor | shape | dtype | |
//! | --- | --- | --- | --- |
//! | `features` | `[n, …]` | any | row-major; starts on a page of the file |
//! | `labels` | `[n]` or `[n, k]` | any | |
//! | `categories` | `[n, c]` | `U32` | if rows have categories: their codes, see below |
//! | `weights` | `[n]` | `F32` | if rows have weights |
//! | `padding` | `[k]` | `U8` | zeros, where a tensor would start off its alignment |
//! | `checksums` | `[1 + blocks]` | `U32` | CRC-32 of the header, then of each 2²⁰ bytes of the tensors before this one |
//!
//! and in `__metadata__` as text `brisk_table` (the format version) and `label`, as JSON `label_names` instead if rows have several labels, `columns` and `statistics`, and for an imported
//! table `source` (JSON) and `import` (how it was read, as text). Any safetensors file with `features` and `labels` is a table; the rest is optional,
//! and tensors of other names are left alone.
//!
//! A table with categories has `dictionaries` in its metadata, JSON: `[{"name": "workclass", "values": ["Private", …]}, …]`, one for each
//! column of `categories`. The *k*-th value has code *k*, counted from 1; code 0 stands for a value that is missing or unknown, and is in no
//! dictionary. Where labels are classes, `classes` is the JSON array of their names, by their numbers from 0. An imported table in which values
//! were filled in has them as `imputed`, a number for each column that is none of the last ones, which are named in `indicators`: those
//! say 1 where the named column was missing. A table of categories alone has `features` of shape `[n, 0]`.
//!
//! A header is never trusted: see [`Layout::parse`].

mod encode;
mod error;
mod json;
mod layout;
mod metadata;
mod shard_index;
mod unique_json;

pub(crate) use encode::{encode, encoded_len};
pub use error::FormatError;
pub use layout::{Layout, Tensor, header_bytes};
pub(crate) use metadata::TableMetadata;
pub use shard_index::{IndexError, MAX_INDEX_BYTES, ShardEntry, ShardIndex};

/// The tensors' names.
pub(crate) const FEATURES: &str = "features";
pub(crate) const LABELS: &str = "labels";
pub(crate) const CATEGORIES: &str = "categories";
pub(crate) const WEIGHTS: &str = "weights";
pub(crate) const PADDING: &str = "padding";
pub(crate) const CHECKSUMS: &str = "checksums";

/// Tensors start at a multiple of this, so that a map of them starts on a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes before the header: its length.
pub(crate) const PREFIX_BYTES: usize = 8;

/// The longest header that is read, as in the reference implementation.
pub const MAX_HEADER_BYTES: u64 = 100_000_000;

/// The most dimensions a tensor may have.
pub const MAX_RANK: usize = 32;
