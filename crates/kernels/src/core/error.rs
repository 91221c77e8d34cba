use crate::DType;

/// Why a kernel could not be made or recorded. On `Err` nothing has been recorded.
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
        /// What would do.
        expected: &'static str,
    },
    /// A combination of options that the kernel does not compute.
    #[error("{kernel}: {found} is not supported, expected {expected}")]
    Unsupported {
        /// The kernel.
        kernel: &'static str,
        /// What was asked for.
        found: String,
        /// What would do.
        expected: &'static str,
    },
    /// Another number of buffers than the kernel has arguments.
    #[error("{kernel}: got {found} buffers, expected {expected}, in the order of its argument list")]
    ArgCount {
        /// The kernel.
        kernel: &'static str,
        /// How many arguments it has.
        expected: usize,
        /// How many buffers came.
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
        /// Bytes it needs.
        expected: u64,
        /// Bytes it got.
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
    /// The WGSL of a dispatch was refused when its pipeline was made.
    #[error("{label}: the pipeline does not compile on `{adapter}`: {reason}")]
    Pipeline {
        /// `crate.kernel` of the dispatch.
        label: String,
        /// The adapter.
        adapter: String,
        /// What wgpu said.
        reason: String,
    },
    /// A dispatch is to bind an argument that its kernel does not have.
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
    /// A buffer would be bound as read and as written in one dispatch, which wgpu refuses even for ranges apart.
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
    /// wgpu refused to bind the buffers: one is no storage buffer, say, or a range is not aligned.
    #[error("{label}: the buffers cannot be bound on `{adapter}`: {reason}")]
    Binding {
        /// `crate.kernel` of the dispatch.
        label: String,
        /// The adapter.
        adapter: String,
        /// What wgpu said.
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
