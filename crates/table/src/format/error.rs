use crate::printable::listed;
use crate::{DType, printable};

/// Why bytes are not a table.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file ends within its header.
    #[error("the header ends at byte {header_end}, the file has {file_bytes}; it is truncated, write it again")]
    HeaderPastEnd {
        /// Where the header ends as the file states it.
        header_end: u64,
        /// How long the file is.
        file_bytes: u64,
    },
    /// The header is longer than the limit.
    #[error("the header claims {found} bytes, at most {limit} are read; is this a safetensors file?")]
    HeaderTooLong {
        /// Its length as the file states it.
        found: u64,
        /// [`MAX_HEADER_BYTES`](super::MAX_HEADER_BYTES)
        limit: u64,
    },
    /// The header is not the JSON that safetensors allows.
    #[error("the header is not that of a safetensors file: {}", printable(&.0.to_string()))]
    Json(serde_json::Error),
    /// A dtype this crate does not know.
    #[error(
        "tensor `{tensor}` has dtype `{found}`, known are BOOL, U8 to U64, I8 to I64, F16, BF16, F32, F64",
        tensor = printable(.tensor), found = printable(.found)
    )]
    UnknownDType {
        /// Whose dtype.
        tensor: String,
        /// What was found.
        found: String,
    },
    /// A shape of more values than can be counted.
    #[error("tensor `{tensor}` has shape {shape:?}, which is too large to be one", tensor = printable(.tensor))]
    ShapeTooLarge {
        /// Whose shape.
        tensor: String,
        /// What was found.
        shape: Vec<u64>,
    },
    /// Shape and dtype take other bytes than the tensor has.
    #[error(
        "tensor `{tensor}`: {dtype} of shape {shape:?} takes {expected} bytes, its range {start}..{end} has {found}",
        found = .end.saturating_sub(*.start), tensor = printable(.tensor)
    )]
    RangeDisagrees {
        /// Whose range.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        shape: Vec<usize>,
        /// How many bytes that takes.
        expected: u64,
        /// Where its bytes start, counted from the end of the header.
        start: u64,
        /// Where they end.
        end: u64,
    },
    /// Tensors overlap, or leave bytes between them.
    #[error(
        "tensor `{tensor}` starts at byte {found} of the data, the one before ends at {expected}; tensors follow one another without gap or overlap",
        tensor = printable(.tensor)
    )]
    NotContiguous {
        /// The tensor that starts elsewhere.
        tensor: String,
        /// Where it should start.
        expected: u64,
        /// Where it starts.
        found: u64,
    },
    /// The file's length is not that of its tensors.
    #[error("the tensors end at byte {expected}, the file has {found}; {}, write it again", if .found < .expected { "it is truncated" } else { "something was appended to it" })]
    FileLength {
        /// Where the last tensor ends.
        expected: u64,
        /// How long the file is.
        found: u64,
    },
    /// A tensor that every table has is missing. [`TensorNames`](crate::TensorNames) opens files that give their tensors other names.
    #[error(
        "there is no tensor `{tensor}`; a table has `features` [n, …] and `labels` [n], this file has {found}",
        tensor = printable(.tensor), found = listed(.found)
    )]
    MissingTensor {
        /// What is missing.
        tensor: String,
        /// What was found.
        found: Vec<String>,
    },
    /// A tensor of a table with a shape or dtype that does not fit.
    #[error(
        "tensor `{tensor}` is {dtype} of shape {found:?}, expected {expected}",
        tensor = printable(.tensor), expected = printable(.expected)
    )]
    TensorShape {
        /// Which one.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        found: Vec<usize>,
        /// What it should be, in words.
        expected: String,
    },
    /// A tensor that starts where its values cannot be borrowed.
    #[error(
        "tensor `{tensor}` starts at byte {start} of the file, {dtype} needs a multiple of {}; write it with larger dtypes first",
        .dtype.n_bytes(), tensor = printable(.tensor)
    )]
    Misaligned {
        /// Which one.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// Where it starts.
        start: u64,
    },
    /// Metadata that says what cannot be.
    #[error("metadata `{key}`: {problem}", problem = printable(.problem))]
    Metadata {
        /// Which entry.
        key: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The table was written by a later version.
    #[error(
        "it is a table of format version {found}, this version reads {expected}; update brisk-table",
        found = printable(.found)
    )]
    Version {
        /// What was found.
        found: String,
        /// What this crate writes.
        expected: &'static str,
    },
}
