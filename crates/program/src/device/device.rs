use std::fmt;
use std::sync::{Arc, OnceLock};

use brisk_kernels::bytemuck::{self, Pod};
use brisk_kernels::{Adapter, wgpu};

use crate::device::counters::{Counters, Transfers};
use crate::device_info::DeviceInfo;
use crate::error::Error;
use crate::executor::Executor;
use crate::gpu::device::GpuDevice;
use crate::gpu::pipeline_cache::PipelineCache;
use crate::profile::roofline::Roofline;
use crate::record::host_type::check_host_type;
use crate::record::persistent::Persistent;

/// Where programs run: a GPU through wgpu, or the CPU executor. Clones are the same device.
///
/// # Threads
/// A device and its executables may be used from several threads at once. Runs, writes and reads happen one after another, in the
/// order in which they were called; a run is not interrupted by another one on the CPU, and on a GPU only between replays.
///
/// # Examples
/// ```
/// use brisk_program::{Device, Selection};
///
/// let device = Device::builder().selection(Selection::Cpu).threads(2).open()?;
/// assert_eq!(device.to_string(), "cpu, 2 threads (cpu, rust)");
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Device {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    info: DeviceInfo,
    executor: Arc<dyn Executor>,
    /// The executor, if it is a GPU's.
    gpu: Option<Arc<GpuDevice>>,
    max_binding_bytes: u64,
    pub(super) roofline: OnceLock<Roofline>,
    reads: Transfers,
    writes: Transfers,
}

/// Prints [`Device::info`].
impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.info().fmt(f)
    }
}

impl Device {
    /// Information about the device.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// The maximum size in bytes of one kernel argument on this device: 128 MiB to 4 GiB on a GPU; the CPU has no such limit,
    /// unless [`DeviceBuilder::max_binding_bytes`](crate::DeviceBuilder::max_binding_bytes) set one. A larger table is held in
    /// several buffers; an elementwise kernel, such as that of an optimizer, is [split](brisk_kernels::Kernel::with_len) into
    /// several.
    pub fn max_binding_bytes(&self) -> usize {
        usize::try_from(self.inner.max_binding_bytes).unwrap_or(usize::MAX)
    }

    /// Bytes this device holds for programs and persistent buffers now, as [`Plan`](crate::Plan) counts them. Memory of dropped
    /// persistent buffers is freed first. Working memory of kernels is not counted, nor, on a CPU without a
    /// [memory limit](crate::DeviceBuilder::memory_limit), copies of the weights that programs read and do not write, in the
    /// order in which they are multiplied.
    pub fn allocated_bytes(&self) -> usize {
        self.executor().memory().allocated_bytes()
    }

    /// How often the host has read, written and allocated its memory so far.
    pub fn counters(&self) -> Counters {
        let Inner { reads, writes, .. } = &*self.inner;
        let ([n_reads, read_bytes], [n_writes, written_bytes]) = (reads.count(), writes.count());
        let n_allocations = self.executor().memory().n_allocations();
        Counters { n_reads, read_bytes, n_writes, written_bytes, n_allocations }
    }

    /// The limit set by [`DeviceBuilder::memory_limit`](crate::DeviceBuilder::memory_limit).
    pub fn memory_limit(&self) -> Option<usize> {
        self.executor().memory().limit_bytes()
    }

    /// Bytes that the driver's allocator reports for this device: those of [`allocated_bytes`](Self::allocated_bytes), plus the
    /// constants of kernels and staging memory. `None` where there is no such report: on the CPU, and on Metal.
    pub fn driver_bytes(&self) -> Option<u64> {
        self.gpu()?.driver_bytes()
    }

    /// The underlying wgpu device and queue, to do other work on the same GPU; `None` on the CPU. Commands submitted to the queue
    /// run in the order of the calls. If the wgpu device is destroyed, this device fails too: calls then return
    /// [`Error::DeviceFailed`].
    pub fn wgpu(&self) -> Option<(&wgpu::Device, &wgpu::Queue)> {
        self.gpu().map(|gpu| (&gpu.device, &gpu.queue))
    }

    /// The properties of the adapter by which kernels choose their variant; `None` on the CPU.
    pub fn adapter(&self) -> Option<Adapter> {
        self.gpu().map(GpuDevice::adapter)
    }

    /// The state of the cache in the folder given to [`DeviceBuilder::pipeline_cache`](crate::DeviceBuilder::pipeline_cache);
    /// `None` without a folder, and if the adapter has no cache.
    pub fn pipeline_cache(&self) -> Option<PipelineCache> {
        self.gpu()?.pipeline_cache()
    }

    /// Sets a persistent buffer to `values`, in stream order with the runs before and after.
    ///
    /// # Dtypes
    /// `f32`, `u32` and `u8` for buffers of these dtypes, `u16` for the bits of f16 and bf16. Types other than Rust's numeric
    /// types, such as those of the crate `half` or structs, are taken as bytes.
    /// # Errors
    /// [`Error::HostType`] for another numeric type; [`Error::HostLen`] if `values` has another number of bytes than the buffer;
    /// [`Error::MemoryLimit`] and [`Error::BufferLimit`] for a buffer without memory on this device so far;
    /// [`Error::OutOfMemory`], [`Error::DeviceFailed`].
    pub fn write<T: Pod>(&self, persistent: &Persistent, values: &[T]) -> Result<(), Error> {
        check_host_type::<T>(persistent)?;
        self.write_bytes(persistent, bytemuck::cast_slice(values))
    }

    /// Sets a persistent buffer to `bytes`, the native-endian representation of its elements.
    ///
    /// # Errors
    /// As [`write`](Self::write); any dtype is accepted.
    pub fn write_bytes(&self, persistent: &Persistent, bytes: &[u8]) -> Result<(), Error> {
        check_host_len(persistent, bytes.len())?;
        self.write_bytes_at(persistent, 0, bytes)
    }

    /// Sets the elements from `start` on.
    ///
    /// # Cost
    /// A GPU copies whole 4-byte words. If written bytes or halves share a word with neighbours that must not change, that word
    /// is read first, which waits for all runs so far.
    ///
    /// # Errors
    /// As [`write`](Self::write); [`Error::HostRange`] if `values` reach beyond the buffer.
    pub fn write_at<T: Pod>(&self, persistent: &Persistent, start: usize, values: &[T]) -> Result<(), Error> {
        check_host_type::<T>(persistent)?;
        let bytes = bytemuck::cast_slice(values);
        let start_bytes = check_host_range(persistent, start, bytes.len())?;
        self.write_bytes_at(persistent, start_bytes, bytes)
    }

    fn write_bytes_at(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error> {
        self.executor().write(persistent, start, bytes)?;
        self.count_write(persistent, bytes.len());
        Ok(())
    }

    /// Counts a write of `n_bytes` by the host.
    pub(crate) fn count_write(&self, persistent: &Persistent, n_bytes: usize) {
        self.inner.writes.add(n_bytes);
        self.set_written(persistent);
    }

    /// Notes that a buffer has been written on this device.
    pub(crate) fn set_written(&self, persistent: &Persistent) {
        if persistent.is_required() {
            self.executor().memory().set_written(persistent);
        }
        persistent.note_write(self);
    }

    /// Whether both are the same device, as clones are.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    pub(crate) fn is_written(&self, persistent: &Persistent) -> bool {
        self.executor().memory().is_written(persistent)
    }

    /// The values of a persistent buffer, after all runs so far: zeros if it was never written. For their bits, use
    /// [`read_bytes`](Self::read_bytes).
    ///
    /// # Dtypes
    /// As [`write`](Self::write).
    /// # Errors
    /// As [`write`](Self::write); [`Error::HostLen`] if its bytes are not a multiple of the size of `T`; [`Error::HostMemory`].
    pub fn read<T: Pod>(&self, persistent: &Persistent) -> Result<Vec<T>, Error> {
        check_host_type::<T>(persistent)?;
        check_host_memory(persistent)?;
        let size = size_of::<T>();
        if size == 0 || !persistent.len_bytes().is_multiple_of(size) {
            return Err(host_len(persistent, size));
        }
        let mut values = vec![T::zeroed(); persistent.len_bytes() / size];
        self.read_into(persistent, &mut values)?;
        Ok(values)
    }

    /// [`read`](Self::read) into the caller's memory. For large buffers that is several times as fast if the memory has been
    /// written to before, because new memory is mapped page by page.
    ///
    /// # Errors
    /// As [`read`](Self::read); [`Error::HostLen`] if `values` has another number of bytes than the buffer.
    pub fn read_into<T: Pod>(&self, persistent: &Persistent, values: &mut [T]) -> Result<(), Error> {
        check_host_type::<T>(persistent)?;
        let bytes = bytemuck::cast_slice_mut(values);
        check_host_len(persistent, bytes.len())?;
        self.read_bytes_into(persistent, bytes)
    }

    /// [`read`](Self::read) for any dtype: the native-endian representation of the elements.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn read_bytes(&self, persistent: &Persistent) -> Result<Vec<u8>, Error> {
        check_host_memory(persistent)?;
        let mut bytes = vec![0; persistent.len_bytes()];
        self.read_bytes_into(persistent, &mut bytes)?;
        Ok(bytes)
    }

    fn read_bytes_into(&self, persistent: &Persistent, bytes: &mut [u8]) -> Result<(), Error> {
        self.inner.reads.add(bytes.len());
        self.executor().read(persistent, bytes)
    }

    /// Waits until all runs so far are done.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    pub fn wait(&self) -> Result<(), Error> {
        self.executor().wait()
    }

    pub(crate) fn new(
        info: DeviceInfo,
        executor: Arc<dyn Executor>,
        gpu: Option<Arc<GpuDevice>>,
        max_binding_bytes: u64,
    ) -> Self {
        let (reads, writes) = Default::default();
        Self { inner: Arc::new(Inner { info, executor, gpu, max_binding_bytes, roofline: OnceLock::new(), reads, writes }) }
    }

    pub(crate) fn executor(&self) -> &Arc<dyn Executor> {
        &self.inner.executor
    }

    fn gpu(&self) -> Option<&GpuDevice> {
        self.inner.gpu.as_deref()
    }
}

fn check_host_len(persistent: &Persistent, found_bytes: usize) -> Result<(), Error> {
    if found_bytes == persistent.len_bytes() { Ok(()) } else { Err(host_len(persistent, found_bytes)) }
}

/// The byte at which element `start` is, if `len_bytes` from there on lie within the buffer.
pub(super) fn check_host_range(persistent: &Persistent, start: usize, len_bytes: usize) -> Result<usize, Error> {
    let start_bytes = start.saturating_mul(persistent.dtype().size_bytes());
    if start_bytes.saturating_add(len_bytes) <= persistent.len_bytes() {
        return Ok(start_bytes);
    }
    let (buffer, len, dtype) = (persistent.name().to_owned(), persistent.len(), persistent.dtype());
    Err(Error::HostRange { buffer, len, dtype, start, found_bytes: len_bytes })
}

/// Checks that the host has memory for the values of the buffer, since a failed allocation would end the process.
fn check_host_memory(persistent: &Persistent) -> Result<(), Error> {
    let len_bytes = persistent.len_bytes();
    let reserved = Vec::<u8>::new().try_reserve_exact(len_bytes);
    reserved.map_err(|_| Error::HostMemory { buffer: persistent.name().to_owned(), len_bytes })
}

fn host_len(persistent: &Persistent, found_bytes: usize) -> Error {
    Error::HostLen {
        buffer: persistent.name().to_owned(),
        len: persistent.len(),
        dtype: persistent.dtype(),
        expected_bytes: persistent.len_bytes(),
        found_bytes,
    }
}
