use crate::dtype::DType;

/// Why a kernel could not be created or recorded. On `Err` nothing has been recorded.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A size is zero, or does not fit what the kernel's index arithmetic (u32) can address.
    #[error("{kernel}: {size} is {found}, expected {expected}")]
    Size {
        /// The kernel.
        kernel: &'static str,
        /// The size's name.
        size: &'static str,
        /// Its value.
        found: usize,
        /// What was expected.
        expected: &'static str,
    },
    /// A combination of options that the kernel does not compute.
    #[error("{kernel}: {found} is not supported, expected {expected}")]
    Unsupported {
        /// The kernel.
        kernel: &'static str,
        /// What was requested.
        found: String,
        /// What is supported.
        expected: &'static str,
    },
    /// The number of buffers differs from the kernel's number of arguments.
    #[error("{kernel}: got {found} buffers, expected {expected}, in the order of its argument list")]
    ArgCount {
        /// The kernel.
        kernel: &'static str,
        /// How many arguments the kernel has.
        expected: usize,
        /// How many buffers were given.
        found: usize,
    },
    /// A buffer is shorter than the argument it is given for.
    #[error("{kernel}: `{arg}` needs {expected} bytes ({dtype:?}), the buffer range has {found}")]
    BufferLen {
        /// The kernel.
        kernel: &'static str,
        /// The argument.
        arg: &'static str,
        /// Its element type.
        dtype: DType,
        /// The number of bytes it needs.
        expected: u64,
        /// The number of bytes of the buffer.
        found: u64,
    },
    /// One argument is larger than the adapter can bind at once.
    #[error(
        "{kernel}: `{arg}` is {len_bytes} bytes, adapter `{adapter}` binds at most {limit_bytes} at once; use smaller batches or split the tensor"
    )]
    BindingLimit {
        /// The kernel.
        kernel: &'static str,
        /// The argument.
        arg: &'static str,
        /// Its length.
        len_bytes: u64,
        /// The adapter.
        adapter: String,
        /// Its `max_storage_buffer_binding_size`.
        limit_bytes: u64,
    },
    /// wgpu rejected the WGSL of a dispatch when its pipeline was created.
    #[error("{label}: the pipeline does not compile on `{adapter}`: {reason}")]
    Pipeline {
        /// `crate.kernel` of the dispatch.
        label: String,
        /// The adapter.
        adapter: String,
        /// The message of wgpu.
        reason: String,
    },
    /// A dispatch binds an argument that its kernel does not have.
    #[error("{label}: there is no argument `{found}`; the kernel has {expected}")]
    UnknownArg {
        /// `crate.kernel` of the dispatch.
        label: &'static str,
        /// The name or index that was given.
        found: String,
        /// The names of the arguments.
        expected: String,
    },
    /// A dispatch has an index that is beyond the arguments of its kernel.
    #[error("{label}: a dispatch binds argument {found}, expected one of the {n_args} that `{kernel}` has")]
    DispatchArg {
        /// `crate.kernel` of the dispatch.
        label: &'static str,
        /// The kernel.
        kernel: &'static str,
        /// The argument's index.
        found: usize,
        /// How many arguments there are.
        n_args: usize,
    },
    /// A dispatch writes an argument that its kernel declares as read only.
    #[error(
        "{label}: a dispatch writes `{arg}`, which the kernel only reads; bind it for reading, or declare it with `Arg::read_write`"
    )]
    ReadOnlyArg {
        /// `crate.kernel` of the dispatch.
        label: &'static str,
        /// The argument.
        arg: &'static str,
    },
    /// No dispatch of a kernel binds an argument for writing that the kernel declares as written.
    #[error("{kernel}: no dispatch writes `{arg}`; bind it for writing in one of them, or declare it with `Arg::read`")]
    UnwrittenArg {
        /// The kernel.
        kernel: &'static str,
        /// The argument.
        arg: &'static str,
    },
    /// A dispatch without workgroups, or with more than any adapter runs.
    #[error(
        "{label}: {found:?} workgroups, expected 1 to 65535 along each of x, y and z; `fold_workgroups` folds more of them into x and y"
    )]
    Workgroups {
        /// `crate.kernel` of the dispatch.
        label: &'static str,
        /// Their numbers along x, y and z.
        found: [u32; 3],
    },
    /// A buffer would be bound for reading and for writing in one dispatch, which wgpu rejects even for disjoint ranges.
    #[error(
        "{label}: `{read}` and `{written}` lie in one buffer, expected another for what is written; wgpu binds no buffer both ways in one dispatch"
    )]
    SharedBuffer {
        /// `crate.kernel` of the dispatch.
        label: &'static str,
        /// The argument that is read.
        read: &'static str,
        /// The argument that is written.
        written: &'static str,
    },
    /// wgpu rejected the bindings, for example because a buffer is not a storage buffer or a range is not aligned.
    #[error("{label}: the buffers cannot be bound on `{adapter}`: {reason}")]
    Binding {
        /// `crate.kernel` of the dispatch.
        label: String,
        /// The adapter.
        adapter: String,
        /// The message of wgpu.
        reason: String,
    },
    /// A self-check found that the device does not compute matrix products correctly.
    #[error("matrix products on `{adapter}` are wrong: {reason}")]
    WrongProducts {
        /// The adapter.
        adapter: String,
        /// What was found.
        reason: String,
    },
    /// No family of matrix products has this name.
    #[error("no family of matrix products is called `{found}`; choose direct, tiled or coop")]
    UnknownFamily {
        /// The name.
        found: String,
    },
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
