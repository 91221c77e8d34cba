//! The executor that replays WGSL dispatches through wgpu.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use brisk_kernels::gpu::{Recorded, Recorder};
use brisk_kernels::wgpu;

use crate::device::{DeviceInfo, DeviceKind};
use crate::{Error, Persistent, Plan, Program};

/// Dispatches in one submit: enough to make its fixed cost small, few enough that no driver's watchdog minds.
const DISPATCHES_PER_SUBMIT: usize = 512;
/// Submits that may be under way before the host waits for the oldest.
const SUBMITS_IN_FLIGHT: usize = 3;
/// Host values are written in pieces of this, so that staging memory stays bounded.
const WRITE_BYTES: usize = 16 << 20;

#[derive(Debug)]
pub(crate) struct GpuDevice {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
    recorder: Mutex<Recorder>,
    persistents: Mutex<HashMap<u64, Entry>>,
    allocated_bytes: Arc<AtomicUsize>,
    /// What the driver reported outside any call.
    failure: Arc<Mutex<Option<String>>>,
}

#[derive(Debug)]
struct Entry {
    persistent: Persistent,
    memory: Arc<Counted>,
}

/// A buffer that counts itself in and out of the device's total.
#[derive(Debug)]
struct Counted {
    buffer: wgpu::Buffer,
    allocated_bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub(crate) struct GpuExecutable {
    kernels: Vec<Recorded>,
    n_dispatches: usize,
    /// Kept alive, and counted, as long as the executable is.
    _memory: Vec<Arc<Counted>>,
}

/// The adapters of all backends, the same GPU of a second backend left out.
pub(crate) fn open_adapters() -> Vec<(DeviceInfo, wgpu::Adapter)> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
        backends: wgpu::Backends::PRIMARY,
        flags: wgpu::InstanceFlags::empty(),
        memory_budget_thresholds: wgpu::MemoryBudgetThresholds { for_resource_creation: Some(95), for_device_loss: None },
        ..wgpu::InstanceDescriptor::new_without_display_handle()
    });
    let mut found: Vec<(DeviceInfo, wgpu::Adapter)> = Vec::new();
    for adapter in pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY)) {
        let info = adapter.get_info();
        let kind = match info.device_type {
            wgpu::DeviceType::Cpu => DeviceKind::Software,
            _ => DeviceKind::Gpu,
        };
        let same = |(_, other): &(DeviceInfo, wgpu::Adapter)| {
            let other = other.get_info();
            !info.device_pci_bus_id.is_empty()
                && other.device_pci_bus_id == info.device_pci_bus_id
                && other.backend != info.backend
        };
        if !found.iter().any(same) {
            let backend = info.backend.to_string();
            found.push((DeviceInfo { name: info.name, kind, backend }, adapter));
        }
    }
    found
}

impl GpuDevice {
    pub(crate) fn open(info: &DeviceInfo, adapter: &wgpu::Adapter) -> Result<Self, Error> {
        let wanted = wgpu::Features::SHADER_F16 | wgpu::Features::SUBGROUP | wgpu::Features::TIMESTAMP_QUERY;
        let request = adapter.request_device(&wgpu::DeviceDescriptor {
            label: Some("brisk"),
            required_features: adapter.features() & wanted,
            required_limits: adapter.limits(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Off,
        });
        let (device, queue) =
            pollster::block_on(request).map_err(|error| Error::Open { adapter: info.name.clone(), reason: error.to_string() })?;
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let report = |failure: &Mutex<Option<String>>, what: String| {
            lock(failure).get_or_insert(what);
        };
        let seen = failure.clone();
        device.on_uncaptured_error(Arc::new(move |error| report(&seen, error.to_string())));
        let seen = failure.clone();
        device.set_device_lost_callback(move |reason, message| {
            if reason != wgpu::DeviceLostReason::Destroyed {
                report(&seen, format!("device lost: {message}"));
            }
        });
        let recorder = Mutex::new(Recorder::new(&device));
        let name = info.name.clone();
        Ok(Self { name, device, queue, recorder, persistents: Mutex::default(), allocated_bytes: Arc::default(), failure })
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn compile(&self, program: &Program, plan: &Plan) -> Result<GpuExecutable, Error> {
        let slots =
            plan.slot_bytes().iter().map(|&len| self.allocate("transients", len).map(Arc::new)).collect::<Result<Vec<_>, _>>()?;
        let mut memory = Vec::with_capacity(program.buffers().len());
        for (i, buffer) in program.buffers().iter().enumerate() {
            memory.push(match (&buffer.persistent, plan.slot_of(i)) {
                (Some(persistent), _) => Some(self.memory_of(persistent)?),
                (None, slot) => slot.map(|slot| slots[slot].clone()),
            });
        }
        let mut recorder = lock(&self.recorder);
        let mut kernels = Vec::with_capacity(program.steps().len());
        for step in program.steps() {
            let bindings: Vec<_> = step
                .args
                .iter()
                .filter_map(|arg| {
                    let memory = memory[arg.buffer].as_ref()?;
                    let size = std::num::NonZero::new(arg.bytes.len().next_multiple_of(4) as u64);
                    Some(wgpu::BufferBinding { buffer: &memory.buffer, offset: arg.bytes.start as u64, size })
                })
                .collect();
            kernels.push(recorder.prepare(&*step.kernel, &bindings)?);
        }
        self.check()?;
        let n_dispatches = kernels.iter().map(Recorded::n_dispatches).sum();
        Ok(GpuExecutable { kernels, n_dispatches, _memory: memory.into_iter().flatten().collect() })
    }

    pub(crate) fn run(&self, executable: &GpuExecutable, n: usize) -> Result<(), Error> {
        let per_submit = (DISPATCHES_PER_SUBMIT / executable.n_dispatches.max(1)).max(1);
        let mut in_flight = std::collections::VecDeque::with_capacity(SUBMITS_IN_FLIGHT);
        let mut left = n;
        while left > 0 {
            let now = left.min(per_submit);
            left -= now;
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("brisk.run") });
            {
                let mut pass =
                    encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: Some("brisk.run"), timestamp_writes: None });
                for _ in 0..now {
                    executable.kernels.iter().for_each(|kernel| kernel.encode(&mut pass));
                }
            }
            if in_flight.len() == SUBMITS_IN_FLIGHT {
                self.wait_for(in_flight.pop_front())?;
            }
            in_flight.push_back(self.queue.submit([encoder.finish()]));
            self.check()?;
        }
        Ok(())
    }

    pub(crate) fn write(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error> {
        let memory = self.memory_of(persistent)?;
        let n_pieces = bytes.len().div_ceil(WRITE_BYTES);
        for (i, piece) in bytes.chunks(WRITE_BYTES).enumerate() {
            let at = (start + i * WRITE_BYTES) as u64;
            // Copies are of whole words; the last bytes of an odd buffer are padding of the same allocation.
            let whole = piece.len() - piece.len() % 4;
            self.queue.write_buffer(&memory.buffer, at, &piece[..whole]);
            if whole < piece.len() {
                let mut word = [0; 4];
                word[..piece.len() - whole].copy_from_slice(&piece[whole..]);
                self.queue.write_buffer(&memory.buffer, at + whole as u64, &word);
            }
            if n_pieces > 1 {
                let index = self.queue.submit([]);
                self.wait_for(Some(index))?;
            }
        }
        self.check()
    }

    pub(crate) fn read(&self, persistent: &Persistent, out: &mut [u8]) -> Result<(), Error> {
        let memory = self.memory_of(persistent)?;
        let size = (out.len() as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some("brisk.read"),
            size,
            usage: wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: Some("brisk.read") });
        encoder.copy_buffer_to_buffer(&memory.buffer, 0, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        let (sender, receiver) = mpsc::channel();
        staging.slice(..).map_async(wgpu::MapMode::Read, move |result| {
            // The receiver lives until the answer is there.
            let _ = sender.send(result);
        });
        self.wait()?;
        let mapped = receiver.try_recv().ok().and_then(Result::ok);
        let view = mapped.and_then(|()| staging.slice(..).get_mapped_range().ok());
        let view = view.ok_or_else(|| self.failed("a buffer could not be read back".to_owned()))?;
        out.copy_from_slice(&view[..out.len()]);
        Ok(())
    }

    pub(crate) fn wait(&self) -> Result<(), Error> {
        self.wait_for(None)
    }

    /// Waits for one submission, or with `None` for all.
    fn wait_for(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<(), Error> {
        let waited = self.device.poll(wgpu::PollType::Wait { submission_index, timeout: None });
        self.check()?;
        waited.map(|_| ()).map_err(|error| self.failed(error.to_string()))
    }

    fn memory_of(&self, persistent: &Persistent) -> Result<Arc<Counted>, Error> {
        let mut entries = lock(&self.persistents);
        entries.retain(|_, entry| !entry.persistent.is_last());
        if let Some(entry) = entries.get(&persistent.id()) {
            return Ok(entry.memory.clone());
        }
        let memory = Arc::new(self.allocate(persistent.name(), persistent.len_bytes())?);
        entries.insert(persistent.id(), Entry { persistent: persistent.clone(), memory: memory.clone() });
        Ok(memory)
    }

    fn allocate(&self, buffer: &str, len_bytes: usize) -> Result<Counted, Error> {
        if len_bytes == 0 {
            return Err(Error::EmptyBuffer { buffer: buffer.to_owned() });
        }
        let size = (len_bytes as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
        let limits = self.device.limits();
        let limit_bytes = limits.max_buffer_size.min(limits.max_storage_buffer_binding_size);
        if size > limit_bytes {
            let adapter = self.name.clone();
            return Err(Error::BufferLimit { buffer: buffer.to_owned(), len_bytes: size, adapter, limit_bytes });
        }
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let made = self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(buffer),
            size,
            usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
            mapped_at_creation: false,
        });
        if pollster::block_on(scope.pop()).is_some() {
            return Err(Error::OutOfMemory {
                buffer: buffer.to_owned(),
                len_bytes: size,
                device: self.name.clone(),
                allocated_bytes: self.allocated_bytes() as u64,
            });
        }
        self.check()?;
        self.allocated_bytes.fetch_add(size as usize, Ordering::Relaxed);
        Ok(Counted { buffer: made, allocated_bytes: self.allocated_bytes.clone() })
    }

    /// An error if the driver has reported one since the device was opened.
    fn check(&self) -> Result<(), Error> {
        match &*lock(&self.failure) {
            None => Ok(()),
            Some(reason) => Err(self.failed(reason.clone())),
        }
    }

    fn failed(&self, reason: String) -> Error {
        Error::DeviceFailed { device: self.name.clone(), reason }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.allocated_bytes.fetch_sub(self.buffer.size() as usize, Ordering::Relaxed);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
