use brisk_atomic_file::{listed, printable};

use crate::dtype::DType;

/// Why bytes are not a valid table.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file ends within its header.
    #[error("the header ends at byte {header_end}, the file has {file_bytes}; it is truncated, write it again")]
    HeaderPastEnd {
        /// The end of the header according to the file.
        header_end: u64,
        /// The length of the file.
        file_bytes: u64,
    },
    /// The header is longer than the limit.
    #[error("the header claims {found} bytes, at most {limit} are read; is this a safetensors file?")]
    HeaderTooLong {
        /// The length of the header according to the file.
        found: u64,
        /// [`MAX_HEADER_BYTES`](crate::format::MAX_HEADER_BYTES)
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
        /// The tensor's name.
        tensor: String,
        /// What was found.
        found: String,
    },
    /// A shape with more values than can be counted.
    #[error("tensor `{tensor}` has shape {shape:?}, which is too large to be one", tensor = printable(.tensor))]
    ShapeTooLarge {
        /// The tensor's name.
        tensor: String,
        /// What was found.
        shape: Vec<u64>,
    },
    /// The length of a tensor does not match its shape and dtype.
    #[error(
        "tensor `{tensor}`: {dtype} of shape {shape:?} takes {expected} bytes, its range {start}..{end} has {found}",
        found = .end.saturating_sub(*.start), tensor = printable(.tensor)
    )]
    RangeDisagrees {
        /// The tensor's name.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        shape: Vec<usize>,
        /// The number of bytes that the shape and dtype need.
        expected: u64,
        /// Where its bytes start, counted from the end of the header.
        start: u64,
        /// Where they end.
        end: u64,
    },
    /// Tensors overlap, or there are bytes between them.
    #[error(
        "tensor `{tensor}` starts at byte {found} of the data, the one before ends at {expected}; tensors follow one another without gap or overlap",
        tensor = printable(.tensor)
    )]
    NotContiguous {
        /// The tensor that starts at the wrong byte.
        tensor: String,
        /// Where it should start.
        expected: u64,
        /// Where it starts.
        found: u64,
    },
    /// The length of the file does not match its tensors.
    #[error("the tensors end at byte {expected}, the file has {found}; {}, write it again", if .found < .expected { "it is truncated" } else { "something was appended to it" })]
    FileLength {
        /// Where the last tensor ends.
        expected: u64,
        /// How long the file is.
        found: u64,
    },
    /// A required tensor is missing. [`TensorNames`](crate::TensorNames) opens files that use other names for their tensors.
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
    /// A tensor with a shape or dtype that is not valid in a table.
    #[error(
        "tensor `{tensor}` is {dtype} of shape {found:?}, expected {expected}",
        tensor = printable(.tensor), expected = printable(.expected)
    )]
    TensorShape {
        /// The tensor's name.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// Its shape.
        found: Vec<usize>,
        /// The expected shape or dtype, in words.
        expected: String,
    },
    /// A tensor that is not aligned, so its values cannot be borrowed.
    #[error(
        "tensor `{tensor}` starts at byte {start} of the file, {dtype} needs a multiple of {}; write it with larger dtypes first",
        .dtype.n_bytes(), tensor = printable(.tensor)
    )]
    Misaligned {
        /// The tensor's name.
        tensor: String,
        /// Its dtype.
        dtype: DType,
        /// Where it starts.
        start: u64,
    },
    /// An invalid entry in the metadata.
    #[error("metadata `{key}`: {problem}", problem = printable(.problem))]
    Metadata {
        /// The key of the entry.
        key: &'static str,
        /// The problem.
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
        /// The version that this crate writes.
        expected: &'static str,
    },
}
