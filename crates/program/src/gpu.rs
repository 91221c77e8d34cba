//! The executor that replays WGSL dispatches through wgpu.

use std::collections::VecDeque;
use std::num::NonZero;
use std::sync::{Arc, Mutex};

use brisk_kernels::gpu::{Recorded, Recorder};
use brisk_kernels::{self as kernels, wgpu};

use crate::device::DeviceInfo;
use crate::memory::{Count, Memory, lock};
use crate::program::{Step, StepArg};
use crate::{Error, Persistent, Plan, Program};

/// Dispatches in one submit: enough to make its fixed cost small, few enough that no driver's watchdog minds.
const DISPATCHES_PER_SUBMIT: usize = 512;
/// Submits that may be under way before the host waits for the oldest.
const SUBMITS_IN_FLIGHT: usize = 4;

#[derive(Debug)]
pub(crate) struct GpuDevice {
    name: String,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    recorder: Mutex<Recorder>,
    memory: Memory<Block>,
    in_flight: Mutex<VecDeque<wgpu::SubmissionIndex>>,
    /// Held while a word is read, changed in part and written back.
    pub(crate) patching: Mutex<()>,
    /// What the driver reported outside any call.
    failure: Arc<Mutex<Option<String>>>,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) buffer: wgpu::Buffer,
    _count: Count,
}

#[derive(Debug)]
pub(crate) struct GpuExecutable {
    kernels: Vec<Recorded>,
    n_dispatches: usize,
    /// Kept alive, and counted, as long as the executable is.
    _blocks: Vec<Arc<Block>>,
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
        Ok(Self {
            name: info.name.clone(),
            recorder: Mutex::new(Recorder::new(&device)),
            memory: Memory::new(),
            in_flight: Mutex::default(),
            patching: Mutex::default(),
            failure: listen(&device),
            device,
            queue,
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The most bytes that one argument of a kernel may have.
    pub(crate) fn max_binding_bytes(&self) -> u64 {
        let limits = self.device.limits();
        // Larger bindings are computed wrongly on Metal.
        limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(u64::from(u32::MAX - 4))
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.memory.allocated_bytes()
    }

    pub(crate) fn compile(&self, program: &Program, plan: &Plan) -> Result<GpuExecutable, Error> {
        self.check()?;
        program.steps().iter().try_for_each(|step| self.check_args(program, step))?;
        let slots = plan.slots().map(|slot| self.allocate(slot.name, slot.len_bytes).map(Arc::new));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let mut blocks = Vec::with_capacity(program.buffers().len());
        for (i, buffer) in program.buffers().iter().enumerate() {
            blocks.push(match &buffer.persistent {
                Some(persistent) => Some(self.block_of(persistent)?),
                None => plan.slot_of(i).map(|slot| slots[slot].clone()),
            });
        }
        let kernels = program.steps().iter().map(|step| self.prepare(step, &blocks)).collect::<Result<Vec<_>, _>>()?;
        let n_dispatches = kernels.iter().map(Recorded::n_dispatches).sum();
        self.check()?;
        Ok(GpuExecutable { kernels, n_dispatches, _blocks: blocks.into_iter().flatten().collect() })
    }

    /// What would otherwise be a refusal by wgpu, in words of the program.
    fn check_args(&self, program: &Program, step: &Step) -> Result<(), Error> {
        let alignment_bytes = self.device.limits().min_storage_buffer_offset_alignment;
        for StepArg { name, buffer, bytes, .. } in &step.args {
            let (kernel, adapter) = (step.kernel.name(), self.name.clone());
            if !bytes.start.is_multiple_of(alignment_bytes as usize) {
                let (program, buffer) = (program.name().to_owned(), program.buffers()[*buffer].name.clone());
                let offset_bytes = bytes.start;
                return Err(Error::SliceOffset { program, kernel, arg: name, buffer, offset_bytes, adapter, alignment_bytes });
            }
        }
        Ok(())
    }

    fn prepare(&self, step: &Step, blocks: &[Option<Arc<Block>>]) -> Result<Recorded, Error> {
        let binding = |arg: &StepArg| {
            let block = blocks[arg.buffer].as_ref().expect("a buffer that a kernel names is persistent or has a slot");
            let size = NonZero::new(words(arg.bytes.len()));
            wgpu::BufferBinding { buffer: &block.buffer, offset: arg.bytes.start as u64, size }
        };
        let bindings: Vec<_> = step.args.iter().map(binding).collect();
        let kernel = &*step.kernel;
        self.scoped(kernel.name(), || {
            let recorded = lock(&self.recorder).prepare(kernel, &bindings)?;
            // wgpu judges bindings and workgroup counts when an encoder is finished: better here than in the middle of a run.
            drop(self.encode(1, std::slice::from_ref(&recorded)));
            Ok(recorded)
        })
    }

    /// Does `work`, and makes an error of what wgpu refuses meanwhile.
    fn scoped<T>(&self, label: &'static str, work: impl FnOnce() -> Result<T, kernels::Error>) -> Result<T, Error> {
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let done = work();
        let refused = [pollster::block_on(validation.pop()), pollster::block_on(internal.pop())];
        let done = done?;
        match refused.into_iter().flatten().next() {
            None => Ok(done),
            Some(error) => {
                let (label, adapter, reason) = (label.to_owned(), self.name.clone(), error.to_string());
                Err(kernels::Error::Pipeline { label, adapter, reason }.into())
            }
        }
    }

    pub(crate) fn run(&self, executable: &GpuExecutable, n: usize) -> Result<(), Error> {
        self.check()?;
        if executable.n_dispatches == 0 {
            return Ok(());
        }
        let n_per_submit = (DISPATCHES_PER_SUBMIT / executable.n_dispatches).max(1);
        let mut n_left = n;
        while n_left > 0 {
            let n_now = n_left.min(n_per_submit);
            n_left -= n_now;
            self.submit(self.encode(n_now, &executable.kernels))?;
        }
        Ok(())
    }

    /// `n` replays as one compute pass.
    fn encode(&self, n: usize, kernels: &[Recorded]) -> wgpu::CommandBuffer {
        let label = Some("brisk.run");
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label, timestamp_writes: None });
        for _ in 0..n {
            kernels.iter().for_each(|kernel| kernel.encode(&mut pass));
        }
        drop(pass);
        encoder.finish()
    }

    /// Hands over, and waits for the oldest submit if too many are under way.
    fn submit(&self, commands: wgpu::CommandBuffer) -> Result<(), Error> {
        let index = self.queue.submit([commands]);
        let oldest = {
            let mut in_flight = lock(&self.in_flight);
            in_flight.push_back(index);
            if in_flight.len() > SUBMITS_IN_FLIGHT { in_flight.pop_front() } else { None }
        };
        match oldest {
            Some(oldest) => self.wait_for(Some(oldest)),
            None => self.check(),
        }
    }

    pub(crate) fn wait(&self) -> Result<(), Error> {
        self.wait_for(None)
    }

    /// Waits for one submission, or with `None` for all.
    pub(crate) fn wait_for(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<(), Error> {
        let waited = self.device.poll(wgpu::PollType::Wait { submission_index, timeout: None });
        self.check()?;
        waited.map(|_| ()).map_err(|error| self.failed(error.to_string()))
    }

    pub(crate) fn block_of(&self, persistent: &Persistent) -> Result<Arc<Block>, Error> {
        self.memory.of(persistent, || self.allocate(persistent.name(), persistent.allocated_bytes()))
    }

    fn allocate(&self, buffer: &str, len_bytes: usize) -> Result<Block, Error> {
        let size = words(len_bytes);
        let limit_bytes = self.device.limits().max_buffer_size;
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
                allocated_bytes: self.memory.counted_bytes() as u64,
            });
        }
        self.check()?;
        Ok(Block { buffer: made, _count: self.memory.count(size as usize) })
    }

    /// An error if the driver has reported one since the device was opened.
    pub(crate) fn check(&self) -> Result<(), Error> {
        match &*lock(&self.failure) {
            None => Ok(()),
            Some(reason) => Err(self.failed(reason.clone())),
        }
    }

    pub(crate) fn failed(&self, reason: String) -> Error {
        Error::DeviceFailed { device: self.name.clone(), reason }
    }
}

/// Keeps the first error that the driver reports outside any call, which wgpu would otherwise panic about.
fn listen(device: &wgpu::Device) -> Arc<Mutex<Option<String>>> {
    let failure: Arc<Mutex<Option<String>>> = Arc::default();
    let seen = failure.clone();
    device.on_uncaptured_error(Arc::new(move |error| {
        lock(&seen).get_or_insert(error.to_string());
    }));
    let seen = failure.clone();
    device.set_device_lost_callback(move |reason, message| {
        if reason != wgpu::DeviceLostReason::Destroyed {
            lock(&seen).get_or_insert(format!("device lost: {message}"));
        }
    });
    failure
}

/// Copies and bindings are of whole 4-byte words.
pub(crate) fn words(len_bytes: usize) -> u64 {
    (len_bytes as u64).checked_next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT).unwrap_or(u64::MAX)
}
