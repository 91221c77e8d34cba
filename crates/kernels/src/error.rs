use crate::dtype::DType;

/// Why a kernel could not be created or recorded. On `Err` nothing has been recorded.
///
/// A `label` is the `crate.kernel` of a dispatch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// A size is zero, or does not fit what the kernel's index arithmetic (u32) can address.
    #[error("{kernel}: {size} is {found}, expected {expected}")]
    Size { kernel: &'static str, size: &'static str, found: usize, expected: &'static str },
    /// A combination of options that the kernel does not compute.
    #[error("{kernel}: {found} is not supported, expected {expected}")]
    Unsupported { kernel: &'static str, found: String, expected: &'static str },
    /// The number of buffers differs from the kernel's number of arguments.
    #[error("{kernel}: got {found} buffers, expected {expected}, in the order of its argument list")]
    ArgCount { kernel: &'static str, expected: usize, found: usize },
    /// A buffer is shorter than the argument it is given for.
    #[error("{kernel}: `{arg}` needs {expected} bytes ({dtype:?}), the buffer range has {found}")]
    BufferLen { kernel: &'static str, arg: &'static str, dtype: DType, expected: u64, found: u64 },
    /// One argument is larger than the adapter can bind at once: `limit_bytes` is its `max_storage_buffer_binding_size`.
    #[error(
        "{kernel}: `{arg}` is {len_bytes} bytes, adapter `{adapter}` binds at most {limit_bytes} at once; use smaller batches or split the tensor"
    )]
    BindingLimit { kernel: &'static str, arg: &'static str, len_bytes: u64, adapter: String, limit_bytes: u64 },
    /// wgpu rejected the WGSL of a dispatch when its pipeline was created.
    #[error("{label}: the pipeline does not compile on `{adapter}`: {reason}")]
    Pipeline { label: String, adapter: String, reason: String },
    /// A dispatch binds an argument, `found` by its name or its index, that its kernel does not have; `expected` are the names of
    /// those that it has.
    #[error("{label}: there is no argument `{found}`; the kernel has {expected}")]
    UnknownArg { label: &'static str, found: String, expected: String },
    /// A dispatch has an index, `found`, that is beyond the arguments of its kernel.
    #[error("{label}: a dispatch binds argument {found}, expected one of the {n_args} that `{kernel}` has")]
    DispatchArg { label: &'static str, kernel: &'static str, found: usize, n_args: usize },
    /// A dispatch writes an argument that its kernel declares as read only.
    #[error(
        "{label}: a dispatch writes `{arg}`, which the kernel only reads; bind it for reading, or declare it with `Arg::read_write`"
    )]
    ReadOnlyArg { label: &'static str, arg: &'static str },
    /// No dispatch of a kernel binds an argument for writing that the kernel declares as written.
    #[error("{kernel}: no dispatch writes `{arg}`; bind it for writing in one of them, or declare it with `Arg::read`")]
    UnwrittenArg { kernel: &'static str, arg: &'static str },
    /// A dispatch without workgroups along x, y or z, or with more than any adapter runs.
    #[error(
        "{label}: {found:?} workgroups, expected 1 to 65535 along each of x, y and z; `fold_workgroups` folds more of them into x and y"
    )]
    Workgroups { label: &'static str, found: [u32; 3] },
    /// A buffer would be bound for reading and for writing in one dispatch, which wgpu rejects even for disjoint ranges.
    #[error(
        "{label}: `{read}` and `{written}` lie in one buffer, expected another for what is written; wgpu binds no buffer both ways in one dispatch"
    )]
    SharedBuffer { label: &'static str, read: &'static str, written: &'static str },
    /// wgpu rejected the bindings, for example because a buffer is not a storage buffer or a range is not aligned.
    #[error("{label}: the buffers cannot be bound on `{adapter}`: {reason}")]
    Binding { label: String, adapter: String, reason: String },
    /// A self-check found that the device does not compute matrix products correctly.
    #[error("matrix products on `{adapter}` are wrong: {reason}")]
    WrongProducts { adapter: String, reason: String },
    /// No family of matrix products has this name.
    #[error("no family of matrix products is called `{found}`; choose direct, tiled or coop")]
    UnknownFamily { found: String },
}

/// Returns [`Error::Unsupported`] with what was `found`, unless it is supported.
pub(crate) fn check_supported(
    kernel: &'static str,
    is_supported: bool,
    found: impl FnOnce() -> String,
    expected: &'static str,
) -> Result<(), Error> {
    if is_supported { Ok(()) } else { Err(Error::Unsupported { kernel, found: found(), expected }) }
}
