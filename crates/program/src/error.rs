use std::fmt;
use std::sync::Arc;

use brisk_kernels::DType;

/// Why a program could not be recorded, compiled or run.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// An error of the kernel itself.
    #[error(transparent)]
    Kernel(#[from] brisk_kernels::Error),
    /// An environment variable has a value that is not accepted.
    #[error("{variable}: {reason}")]
    Environment { variable: &'static str, reason: brisk_kernels::Error },
    /// The number of slices differs from the number of the kernel's arguments, whose `names` these are, not counting scratch.
    #[error(
        "{program}: kernel `{kernel}` takes {expected} arguments, got {found}; give a slice for each of {names}, in this order"
    )]
    ArgCount { program: String, kernel: &'static str, expected: usize, names: String, found: usize },
    /// A slice of another length or type than the argument.
    #[error(
        "{program}: kernel `{kernel}` wants {expected_len} {expected_dtype:?} for `{arg}`, got {found_len} {found_dtype:?} of `{buffer}`; give a slice of that type and length, or change the sizes of the kernel"
    )]
    Arg {
        program: String,
        kernel: &'static str,
        arg: &'static str,
        expected_len: usize,
        expected_dtype: DType,
        buffer: String,
        found_len: usize,
        found_dtype: DType,
    },
    /// A kernel is given a buffer twice, the second time as `arg`, and writes to it.
    #[error(
        "{program}: kernel `{kernel}` writes `{buffer}` and is given it a second time as `{arg}`; a GPU binds a buffer for reading or for writing, so use another buffer for one of them"
    )]
    Alias { program: String, kernel: &'static str, buffer: String, arg: &'static str },
    /// A transient buffer is read before any kernel of the program wrote all of it: `element` is the first that was not written.
    #[error(
        "{program}: kernel `{kernel}` reads transient `{buffer}` as `{arg}` before any kernel wrote element {element} of it; use a persistent buffer for values from outside"
    )]
    ReadBeforeWrite { program: String, kernel: &'static str, arg: &'static str, buffer: String, element: usize },
    /// A slice belongs to another program.
    #[error(
        "{program}: kernel `{kernel}` is given a slice of another program as `{arg}`; share values by a `Persistent` that both bind"
    )]
    ForeignSlice { program: String, kernel: &'static str, arg: &'static str },
    /// An argument without elements.
    #[error("{program}: kernel `{kernel}` has no elements in `{arg}`; leave a kernel over nothing out of the program")]
    EmptyArg { program: String, kernel: &'static str, arg: &'static str },
    /// A kernel lists an argument after its scratch.
    #[error("{program}: kernel `{kernel}` lists `{arg}` after its scratch; scratch comes last in `Kernel::signature`")]
    ScratchOrder { program: String, kernel: &'static str, arg: &'static str },
    /// A slice starts at an offset at which the adapter cannot bind a buffer: `alignment_bytes` is its
    /// `min_storage_buffer_offset_alignment`.
    #[error(
        "{program}: kernel `{kernel}` is given a slice of `{buffer}` from byte {offset_bytes} as `{arg}`, adapter `{adapter}` binds at multiples of {alignment_bytes} bytes; start slices at multiples of 256 bytes, which every adapter supports"
    )]
    SliceOffset {
        program: String,
        kernel: &'static str,
        arg: &'static str,
        buffer: String,
        offset_bytes: usize,
        adapter: String,
        alignment_bytes: u32,
    },
    /// A host step lists scratch, which only kernels have.
    #[error("{program}: host step `{step}` lists `{arg}` as scratch; keep what it needs on the host")]
    HostScratch { program: String, step: &'static str, arg: &'static str },
    /// A host step reads or writes something that is not among its arguments: `how` is `read` or `written`, `arg` the index of
    /// the argument, `start` the first element.
    #[error(
        "host step `{step}`: {len_bytes} bytes from element {start} of argument {arg} cannot be {how}; list the argument, its length and its access in `HostStep::args`"
    )]
    HostArg { step: &'static str, arg: usize, how: &'static str, start: usize, len_bytes: usize },
    /// A host step failed.
    #[error("{program}: host step `{step}`: {cause}")]
    HostStep { program: String, step: &'static str, cause: HostFailure },
    /// A buffer without elements.
    #[error("buffer `{buffer}` has no elements; a buffer needs at least one")]
    EmptyBuffer { buffer: String },
    /// Host values of another length than the buffer, which has `len` elements.
    #[error(
        "`{buffer}` holds {expected_bytes} bytes ({len} x {dtype:?}), the values on the host have {found_bytes}; give as many values of that type"
    )]
    HostLen { buffer: String, len: usize, dtype: DType, expected_bytes: usize, found_bytes: usize },
    /// Host values, from element `start` on, for elements that the buffer does not have.
    #[error(
        "`{buffer}` holds {len} x {dtype:?}, and {found_bytes} bytes from element {start} on reach beyond the last; start earlier, or give fewer values"
    )]
    HostRange { buffer: String, len: usize, dtype: DType, start: usize, found_bytes: usize },
    /// There is no memory on the host for the values of a buffer.
    #[error("the {len_bytes} bytes of `{buffer}` do not fit in the memory of the host, so they cannot be read there")]
    HostMemory { buffer: String, len_bytes: usize },
    /// Host values of a type, `found`, that the buffer does not hold; its values are `expected` on the host.
    #[error(
        "`{buffer}` holds {dtype:?}, which is `{expected}` on the host, found `{found}`; convert the values, give the buffer another dtype, or use bytes (`read_bytes`, `write_bytes`)"
    )]
    HostType { buffer: String, dtype: DType, expected: &'static str, found: &'static str },
    /// A program reads a [required](crate::Persistent::required) buffer that has never been written on the device.
    #[error(
        "{program}: kernel `{kernel}` reads `{buffer}`, to which nothing has been written on `{device}`; write its values before the first run, such as with `Device::write`, or as the documentation of the model that it belongs to says"
    )]
    Unwritten { program: String, kernel: &'static str, buffer: String, device: String },
    /// The selected device does not exist.
    #[error(
        "no device `{asked}`; available are {available}; select one of them by its index or a part of its name, or say `best`, `gpu`, `cpu` or `software`"
    )]
    NoDevice { asked: String, available: String },
    /// The driver refused to open the adapter.
    #[error("adapter `{adapter}` does not open: {reason}; pick another with BRISK_DEVICE, or `cpu`")]
    Open { adapter: String, reason: String },
    /// One buffer is larger than the adapter allows.
    #[error(
        "`{buffer}` is {len_bytes} bytes, adapter `{adapter}` allows at most {limit_bytes} in one buffer; use smaller batches, fewer rows or the cpu"
    )]
    BufferLimit { buffer: String, len_bytes: u64, adapter: String, limit_bytes: u64 },
    /// The device, on which this process holds `allocated_bytes`, does not have enough memory for a buffer.
    #[error(
        "`{buffer}` ({len_bytes} bytes) does not fit on `{device}`, where this process holds {allocated_bytes} bytes; use smaller batches or another device"
    )]
    OutOfMemory { buffer: String, len_bytes: u64, device: String, allocated_bytes: u64 },
    /// A program or buffer, `name`, would take the device beyond its [`memory_limit`](crate::DeviceBuilder::memory_limit): it
    /// needs `needed_bytes` in addition to those that are held.
    #[error(
        "`{name}` needs {needed_bytes} bytes on `{device}`, where {held_bytes} of at most {limit_bytes} are held; use smaller batches, drop programs and buffers not needed any more, or raise the memory limit"
    )]
    MemoryLimit { name: String, needed_bytes: u64, device: String, held_bytes: u64, limit_bytes: u64 },
    /// The device failed during work, which is the kernel or program that it was given last: its driver lost it, or reported an
    /// error outside any call. All later calls fail too.
    #[error(
        "device `{device}` failed {during}: {reason}; what it held is lost, open it again and start from the last checkpoint"
    )]
    DeviceFailed { device: String, during: String, reason: String },
}

/// The error of a [`HostStep`](crate::HostStep), shared by the clones of an [`Error`]. Two are equal if they share one error.
#[derive(Debug, Clone)]
pub struct HostFailure(Arc<dyn std::error::Error + Send + Sync>);

impl HostFailure {
    /// The underlying error, if it is a `T`.
    pub fn downcast_ref<T: std::error::Error + 'static>(&self) -> Option<&T> {
        self.0.downcast_ref()
    }
}

impl From<Box<dyn std::error::Error + Send + Sync>> for HostFailure {
    fn from(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self(error.into())
    }
}

impl PartialEq for HostFailure {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for HostFailure {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source()
    }
}
