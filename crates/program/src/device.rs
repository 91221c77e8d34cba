#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use brisk_kernels::bytemuck::{self, Pod};
use brisk_kernels::wgpu;

use crate::adapters::open_adapters;
use crate::cpu::CpuDevice;
use crate::executable::Executable;
use crate::gpu::GpuDevice;
use crate::{Error, Persistent, Program, Selection, Uploads};

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
/// assert_eq!(device.info().to_string(), "cpu, 2 threads (cpu, rayon)");
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    info: DeviceInfo,
    executor: Executor,
    max_binding_bytes: u64,
}

#[derive(Debug)]
pub(crate) enum Executor {
    Cpu(CpuDevice),
    Gpu(Box<GpuDevice>),
}

/// What a device is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceInfo {
    /// As the driver names itself; for the CPU how many threads it has.
    pub name: String,
    /// Which executor, and whether there is hardware behind it.
    pub kind: DeviceKind,
    /// `vulkan`, `metal`, `dx12`, or `rayon` for the CPU.
    pub backend: String,
    /// Why [`Selection::Best`] passed over a GPU that is there: it did not open. `None` for what was asked for by name.
    pub fallback: Option<String>,
}

/// Which executor runs, and whether there is hardware behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceKind {
    /// The plain-Rust twins.
    Cpu,
    /// WGSL on a hardware GPU.
    Gpu,
    /// WGSL on a software adapter.
    Software,
}

impl DeviceKind {
    /// The executor's name in results: `cpu` or `gpu`.
    pub const fn executor(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Gpu | Self::Software => "gpu",
        }
    }
}

impl fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
            Self::Software => "software",
        })
    }
}

impl fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, {})", self.name, self.kind, self.backend)?;
        self.fallback.as_ref().map_or(Ok(()), |reason| write!(f, "; {reason}"))
    }
}

/// Settings of a device that is yet to be opened.
#[derive(Debug, Clone, Default)]
pub struct DeviceBuilder {
    selection: Selection,
    n_threads: usize,
    max_binding_bytes: Option<u64>,
}

impl DeviceBuilder {
    /// Which device. The default is [`Selection::Best`].
    pub fn selection(mut self, selection: Selection) -> Self {
        self.selection = selection;
        self
    }

    /// Threads of the CPU executor; 0, the default, takes as many as there are cores. Results do not depend on it.
    pub fn threads(mut self, n_threads: usize) -> Self {
        self.n_threads = n_threads;
        self
    }

    /// Lowers what one argument of a kernel may have, as if the adapter bound no more: tables are then held in more windows. For tests, and
    /// for drivers that claim more than they can do. [`Device::compile`] refuses kernels beyond it, on the CPU too.
    pub fn max_binding_bytes(mut self, max_bytes: usize) -> Self {
        self.max_binding_bytes = Some(max_bytes as u64);
        self
    }

    /// Opens the device.
    ///
    /// # Errors
    /// [`Error::NoDevice`], with a list of what there is; [`Error::Open`].
    pub fn open(self) -> Result<Device, Error> {
        match &self.selection {
            Selection::Cpu => self.open_cpu(None),
            Selection::Best => self.open_best(open_adapters(), |info, adapter| self.open_gpu(info, adapter)),
            asked => {
                let mut adapters = open_adapters();
                match adapters.iter().enumerate().position(|(i, (info, _))| matches(asked, i, info)) {
                    Some(index) => {
                        let (info, adapter) = adapters.swap_remove(index);
                        self.open_gpu(info, &adapter)
                    }
                    None => Err(Error::NoDevice { asked: asked.to_string(), available: available(&adapters) }),
                }
            }
        }
    }

    /// The first hardware GPU that opens, else the CPU; told why those before it were passed over.
    fn open_best<A>(
        &self,
        adapters: Vec<(DeviceInfo, A)>,
        open: impl Fn(DeviceInfo, &A) -> Result<Device, Error>,
    ) -> Result<Device, Error> {
        let mut fallback = None;
        for (info, adapter) in adapters.into_iter().filter(|(info, _)| info.kind == DeviceKind::Gpu) {
            match open(DeviceInfo { fallback: fallback.clone(), ..info }, &adapter) {
                Ok(device) => return Ok(device),
                Err(error) => fallback = fallback.or(Some(error.to_string())),
            }
        }
        self.open_cpu(fallback)
    }

    fn open_cpu(&self, fallback: Option<String>) -> Result<Device, Error> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let n_threads = if self.n_threads == 0 { cores } else { self.n_threads };
        let name = format!("cpu, {n_threads} threads");
        let executor = Executor::Cpu(CpuDevice::new(name.clone(), n_threads)?);
        let info = DeviceInfo { name, kind: DeviceKind::Cpu, backend: "rayon".to_owned(), fallback };
        Ok(self.device(info, executor, u64::MAX))
    }

    fn open_gpu(&self, info: DeviceInfo, adapter: &wgpu::Adapter) -> Result<Device, Error> {
        let gpu = GpuDevice::open(&info, adapter)?;
        let max_binding_bytes = gpu.max_binding_bytes();
        Ok(self.device(info, Executor::Gpu(Box::new(gpu)), max_binding_bytes))
    }

    fn device(&self, info: DeviceInfo, executor: Executor, max_binding_bytes: u64) -> Device {
        let max_binding_bytes = self.max_binding_bytes.map_or(max_binding_bytes, |lowered| lowered.min(max_binding_bytes));
        Device { inner: Arc::new(Inner { info, executor, max_binding_bytes }) }
    }
}

fn matches(asked: &Selection, index: usize, info: &DeviceInfo) -> bool {
    match asked {
        Selection::Gpu => info.kind == DeviceKind::Gpu,
        Selection::Software => info.kind == DeviceKind::Software,
        Selection::Index(wanted) => *wanted == index,
        Selection::Name(part) => info.name.to_lowercase().contains(&part.to_lowercase()),
        Selection::Best | Selection::Cpu => false,
    }
}

fn available<A>(adapters: &[(DeviceInfo, A)]) -> String {
    let adapters = adapters.iter().enumerate().map(|(i, (info, _))| format!("{i}: {info}"));
    adapters.chain(std::iter::once("cpu".to_owned())).collect::<Vec<_>>().join("; ")
}

impl Device {
    /// What `BRISK_DEVICE` asks for (see [`Selection`]); where it is not set a hardware GPU, else the CPU executor.
    ///
    /// A GPU that does not open is passed over, and [`DeviceInfo::fallback`] says why; one that was asked for is an error.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if `BRISK_DEVICE` names what is not there; [`Error::Open`].
    pub fn best() -> Result<Self, Error> {
        Self::builder().selection(Selection::from_env()).open()
    }

    /// The CPU executor, with a thread a core.
    ///
    /// # Errors
    /// [`Error::Open`] if the threads cannot be started.
    pub fn cpu() -> Result<Self, Error> {
        Self::builder().selection(Selection::Cpu).open()
    }

    /// Settings for a device.
    pub fn builder() -> DeviceBuilder {
        DeviceBuilder::default()
    }

    /// The adapters there are, in the order of their indices. The CPU executor is always there and not listed.
    pub fn list() -> Vec<DeviceInfo> {
        open_adapters().into_iter().map(|(info, _)| info).collect()
    }

    /// What it is.
    pub fn info(&self) -> &DeviceInfo {
        &self.inner.info
    }

    /// The most bytes that one argument of a kernel may have here: 128 MiB to 4 GiB on a GPU; the CPU has no such limit, unless
    /// [`DeviceBuilder::max_binding_bytes`] set one. A larger table is held in several buffers.
    pub fn max_binding_bytes(&self) -> usize {
        usize::try_from(self.inner.max_binding_bytes).unwrap_or(usize::MAX)
    }

    /// Bytes this device holds for programs and persistent buffers now, as [`Plan`](crate::Plan) counts them. What nobody has any more
    /// is freed first.
    pub fn allocated_bytes(&self) -> usize {
        match self.executor() {
            Executor::Cpu(cpu) => cpu.allocated_bytes(),
            Executor::Gpu(gpu) => gpu.allocated_bytes(),
        }
    }

    /// Plans the program's memory, allocates it and makes what a replay needs.
    ///
    /// # Errors
    /// [`Error::ReadBeforeWrite`]; [`Error::Kernel`] for a kernel that the adapter cannot run, or whose WGSL it refuses;
    /// [`Error::SliceOffset`]; [`Error::BufferLimit`], [`Error::OutOfMemory`]; [`Error::DeviceFailed`]. On `Err` no transient
    /// memory is kept, and the device goes on.
    pub fn compile(&self, program: &Program) -> Result<Executable, Error> {
        Executable::compile(self, program)
    }

    /// Sets a persistent buffer to `values`, in stream order with the runs before and after. Values are taken as bytes: halves
    /// are given as `u16` bits or any other type of two bytes.
    ///
    /// # Errors
    /// [`Error::HostLen`] if `values` are not as many bytes; [`Error::OutOfMemory`], [`Error::DeviceFailed`].
    pub fn write<T: Pod>(&self, persistent: &Persistent, values: &[T]) -> Result<(), Error> {
        let bytes = bytemuck::cast_slice(values);
        check_host_len(persistent, bytes.len())?;
        self.write_bytes(persistent, 0, bytes)
    }

    /// Sets the elements from `start` on.
    ///
    /// # Cost
    /// A GPU copies whole 4-byte words. Where bytes or halves share a word with neighbours that stay, that word is read first,
    /// which waits for the runs so far.
    ///
    /// # Errors
    /// As [`write`](Self::write), if `values` reach beyond the buffer.
    pub fn write_at<T: Pod>(&self, persistent: &Persistent, start: usize, values: &[T]) -> Result<(), Error> {
        let bytes = bytemuck::cast_slice(values);
        let start = start.saturating_mul(persistent.dtype().size_bytes());
        check_host_range(persistent, start..start.saturating_add(bytes.len()))?;
        self.write_bytes(persistent, start, bytes)
    }

    /// Staging memory for values that are written again and again: `n_slots` slots of `slot_bytes`, of which two let the host fill one
    /// while the device reads the other.
    ///
    /// # Errors
    /// [`Error::BufferLimit`], [`Error::OutOfMemory`] if there is no room for it; [`Error::DeviceFailed`].
    pub fn uploads(&self, slot_bytes: usize, n_slots: usize) -> Result<Uploads, Error> {
        Uploads::new(self, slot_bytes, n_slots)
    }

    fn write_bytes(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error> {
        match self.executor() {
            Executor::Cpu(cpu) => cpu.write(persistent, start, bytes),
            Executor::Gpu(gpu) => gpu.write(persistent, start, bytes),
        }
    }

    /// The values of a persistent buffer, after all runs so far: zeros if it was never written.
    ///
    /// # Errors
    /// [`Error::HostLen`] if `T` does not divide its bytes; [`Error::OutOfMemory`] for a buffer not seen before;
    /// [`Error::DeviceFailed`].
    pub fn read<T: Pod>(&self, persistent: &Persistent) -> Result<Vec<T>, Error> {
        let size = size_of::<T>();
        if size == 0 || !persistent.len_bytes().is_multiple_of(size) {
            return Err(host_len(persistent, size));
        }
        let mut values = vec![T::zeroed(); persistent.len_bytes() / size];
        let bytes = bytemuck::cast_slice_mut(&mut values);
        match self.executor() {
            Executor::Cpu(cpu) => cpu.read(persistent, bytes)?,
            Executor::Gpu(gpu) => gpu.read(persistent, bytes)?,
        }
        Ok(values)
    }

    /// Waits until all runs so far are done.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    pub fn wait(&self) -> Result<(), Error> {
        match self.executor() {
            Executor::Cpu(_) => Ok(()),
            Executor::Gpu(gpu) => gpu.wait(),
        }
    }

    pub(crate) fn executor(&self) -> &Executor {
        &self.inner.executor
    }
}

fn check_host_len(persistent: &Persistent, found_bytes: usize) -> Result<(), Error> {
    if found_bytes == persistent.len_bytes() { Ok(()) } else { Err(host_len(persistent, found_bytes)) }
}

/// Whether a run of bytes lies in the buffer.
pub(crate) fn check_host_range(persistent: &Persistent, bytes: Range<usize>) -> Result<(), Error> {
    if bytes.end <= persistent.len_bytes() { Ok(()) } else { Err(host_len(persistent, bytes.end)) }
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
