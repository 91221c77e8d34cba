use brisk_atomic_file::{listed, printable};

use crate::dtype::DType;

/// Why bytes are not a valid table.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum FormatError {
    /// The file ends within its header.
    #[error("the header ends at byte {header_end}, the file has {file_bytes}; it is truncated, write it again")]
    HeaderPastEnd { header_end: u64, file_bytes: u64 },
    /// The header is longer than [`MAX_HEADER_BYTES`](crate::format::MAX_HEADER_BYTES).
    #[error("the header claims {found} bytes, at most {limit} are read; is this a safetensors file?")]
    HeaderTooLong { found: u64, limit: u64 },
    /// The header is not the JSON that safetensors allows.
    #[error("the header is not that of a safetensors file: {}", printable(&.0.to_string()))]
    Json(serde_json::Error),
    /// A dtype this crate does not know.
    #[error(
        "tensor `{tensor}` has dtype `{found}`, known are BOOL, U8 to U64, I8 to I64, F16, BF16, F32, F64",
        tensor = printable(.tensor), found = printable(.found)
    )]
    UnknownDType { tensor: String, found: String },
    /// A shape with more values than can be counted.
    #[error("tensor `{tensor}` has shape {shape:?}, which is too large to be one", tensor = printable(.tensor))]
    ShapeTooLarge { tensor: String, shape: Vec<u64> },
    /// The length of a tensor, `start..end` from the end of the header on, does not match its shape and dtype, which need
    /// `expected` bytes.
    #[error(
        "tensor `{tensor}`: {dtype} of shape {shape:?} takes {expected} bytes, its range {start}..{end} has {found}",
        found = .end.saturating_sub(*.start), tensor = printable(.tensor)
    )]
    RangeDisagrees { tensor: String, dtype: DType, shape: Vec<usize>, expected: u64, start: u64, end: u64 },
    /// Tensors overlap, or there are bytes between them: `tensor` starts at byte `found` of the data and should start at
    /// `expected`.
    #[error(
        "tensor `{tensor}` starts at byte {found} of the data, the one before ends at {expected}; tensors follow one another without gap or overlap",
        tensor = printable(.tensor)
    )]
    NotContiguous { tensor: String, expected: u64, found: u64 },
    /// The length of the file does not match its tensors, of which the last ends at byte `expected`.
    #[error("the tensors end at byte {expected}, the file has {found}; {}, write it again", if .found < .expected { "it is truncated" } else { "something was appended to it" })]
    FileLength { expected: u64, found: u64 },
    /// A required tensor is missing. [`TensorNames`](crate::TensorNames) opens files that use other names for their tensors.
    #[error(
        "there is no tensor `{tensor}`; a table has `features` [n, …] and `labels` [n], this file has {found}",
        tensor = printable(.tensor), found = listed(.found)
    )]
    MissingTensor { tensor: String, found: Vec<String> },
    /// A tensor with a shape or dtype that is not valid in a table. `expected` is in words.
    #[error(
        "tensor `{tensor}` is {dtype} of shape {found:?}, expected {expected}",
        tensor = printable(.tensor), expected = printable(.expected)
    )]
    TensorShape { tensor: String, dtype: DType, found: Vec<usize>, expected: String },
    /// A tensor that is not aligned, so its values cannot be borrowed. It starts at byte `start` of the file.
    #[error(
        "tensor `{tensor}` starts at byte {start} of the file, {dtype} needs a multiple of {}; write it with larger dtypes first",
        .dtype.n_bytes(), tensor = printable(.tensor)
    )]
    Misaligned { tensor: String, dtype: DType, start: u64 },
    /// An invalid entry in the metadata.
    #[error("metadata `{key}`: {problem}", problem = printable(.problem))]
    Metadata { key: &'static str, problem: String },
    /// The table was written by a later version.
    #[error(
        "it is a table of format version {found}, this version reads {expected}; update brisk-table",
        found = printable(.found)
    )]
    Version { found: String, expected: &'static str },
}
