//! A wgpu device, and the work that is submitted to it.

use std::collections::VecDeque;
use std::num::NonZero;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brisk_kernels::gpu::{Recorded, Recorder, encode_all};
use brisk_kernels::{self as kernels, CoopShape, MatmulFamily, wgpu};

use crate::error::Error;
use crate::gpu::failure::{FailedWork, Failure, Work};
use crate::gpu::pipeline_cache::{CacheFile, PipelineCache};
use crate::memory::{Count, Memory, lock};
use crate::record::persistent::Persistent;
use crate::record::program::{Program, Step, StepArg};

/// Submits that may be in flight before the host waits for the oldest.
const SUBMITS_IN_FLIGHT: usize = 4;
/// The least size of a kernel's constants: a uniform has at least this many bytes.
const CONSTANTS_BYTES: u64 = 16;
const RUN: Option<&str> = Some("brisk.run");
/// The name of staging buffers in errors.
pub(crate) const STAGING: &str = "staging memory";

#[derive(Debug)]
pub(crate) struct GpuDevice {
    name: String,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    pub(super) recorder: Mutex<Recorder>,
    pub(super) cache: Option<CacheFile>,
    pub(super) memory: Memory<Block>,
    in_flight: Mutex<VecDeque<wgpu::SubmissionIndex>>,
    /// Held while a word is read, changed in part and written back.
    pub(crate) patching: Mutex<()>,
    failure: Failure,
}

#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) buffer: wgpu::Buffer,
    _count: Count,
}

impl GpuDevice {
    pub(crate) fn new(
        name: String,
        Opened { device, queue, coop, f16_accumulation, failure }: Opened,
        matmul_family: Option<MatmulFamily>,
        memory_limit: Option<usize>,
        cache_folder: Option<&Path>,
    ) -> Result<Self, Error> {
        let cache = cache_folder.and_then(|folder| CacheFile::open(folder, &device));
        let recorder = Recorder::new(&device).with_coop(coop);
        let recorder = if f16_accumulation { recorder.with_f16_accumulation() } else { recorder };
        let recorder = match &cache {
            Some(file) => recorder.with_cache(file.cache.clone()),
            None => recorder,
        };
        let recorder = match matmul_family {
            Some(family) => recorder.with_matmul_family(family)?,
            None => recorder,
        };
        Ok(Self {
            recorder: Mutex::new(recorder),
            cache,
            memory: Memory::new(name.clone(), memory_limit),
            in_flight: Mutex::default(),
            patching: Mutex::default(),
            failure,
            name,
            device,
            queue,
        })
    }

    /// The most bytes that one argument of a kernel may have.
    pub(crate) fn max_binding_bytes(&self) -> u64 {
        let limits = self.device.limits();
        // On Metal, larger bindings give wrong results.
        limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(u64::from(u32::MAX - 4))
    }

    pub(crate) fn adapter(&self) -> kernels::Adapter {
        lock(&self.recorder).adapter().clone()
    }

    pub(crate) fn pipeline_cache(&self) -> Option<PipelineCache> {
        self.cache.as_ref().map(CacheFile::state)
    }

    /// Bytes that the driver's allocator reports, after memory that is no longer in use has been freed.
    pub(crate) fn driver_bytes(&self) -> Option<u64> {
        // The result does not matter: whether work is in flight is not asked here, and a lost device gives no report below.
        let _ = self.device.poll(wgpu::PollType::Poll);
        self.device.generate_allocator_report().map(|report| report.total_allocated_bytes)
    }

    /// Checks what wgpu would refuse otherwise, so that the error names the program's kernel and buffer.
    pub(super) fn check_args(&self, program: &Program, step: &Step) -> Result<(), Error> {
        let alignment_bytes = self.device.limits().min_storage_buffer_offset_alignment;
        for StepArg { name, buffer, bytes, .. } in &step.args {
            let (kernel, adapter) = (step.kernel.name(), self.name.clone());
            if !bytes.start.is_multiple_of(alignment_bytes as usize) {
                let (program, buffer) = (program.name().to_owned(), program.buffers[*buffer].name.clone());
                let offset_bytes = bytes.start;
                return Err(Error::SliceOffset { program, kernel, arg: name, buffer, offset_bytes, adapter, alignment_bytes });
            }
        }
        Ok(())
    }

    /// Prepares the kernel over its buffers, each given as a block and the offset of the buffer in it.
    pub(super) fn prepare(&self, step: &Step, blocks: &[Option<(Arc<Block>, usize)>]) -> Result<Recorded, Error> {
        let binding = |arg: &StepArg| {
            let (block, start_bytes) = blocks[arg.buffer].as_ref().expect("a buffer that a kernel names has a place");
            let (offset, size) = ((start_bytes + arg.bytes.start) as u64, NonZero::new(words(arg.bytes.len())));
            wgpu::BufferBinding { buffer: &block.buffer, offset, size }
        };
        let bindings: Vec<_> = step.args.iter().map(binding).collect();
        let kernel = &*step.kernel;
        self.failure.expect(Work::Compile(kernel.name()));
        let recorded = self.scoped(kernel.name(), || {
            let recorded = lock(&self.recorder).prepare(kernel, &bindings)?;
            // wgpu validates bindings and workgroup counts when an encoder is finished: better here than during a run.
            drop(self.encode(1, std::slice::from_ref(&recorded)));
            Ok(recorded)
        })?;
        // Some drivers lose the device when they cannot create a pipeline.
        self.check()?;
        Ok(recorded)
    }

    /// Does `work`, and turns wgpu's validation errors meanwhile into an [`Error`].
    fn scoped<T>(&self, label: &'static str, work: impl FnOnce() -> Result<T, kernels::Error>) -> Result<T, Error> {
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let done = self.with_room(work);
        let refused = [pollster::block_on(validation.pop()), pollster::block_on(internal.pop())];
        let done = done.ok_or_else(|| self.no_room(&format!("constants of kernel `{label}`"), CONSTANTS_BYTES))??;
        match refused.into_iter().flatten().next() {
            None => Ok(done),
            Some(error) => {
                let (label, adapter, reason) = (label.to_owned(), self.name.clone(), error.to_string());
                Err(kernels::Error::Pipeline { label, adapter, reason }.into())
            }
        }
    }

    /// Does `work`; `None` if the device ran out of memory.
    pub(crate) fn with_room<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        let scope = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let done = work();
        pollster::block_on(scope.pop()).is_none().then_some(done)
    }

    pub(crate) fn no_room(&self, buffer: &str, len_bytes: u64) -> Error {
        let allocated_bytes = self.memory.counted_bytes() as u64;
        Error::OutOfMemory { buffer: buffer.to_owned(), len_bytes, device: self.name.clone(), allocated_bytes }
    }

    /// Notes that a run of `program` comes next, for the message of a failure.
    pub(crate) fn expect_run(&self, program: &Arc<str>) {
        self.failure.expect(Work::Run(program.clone()));
    }

    /// Encodes `n` replays as one compute pass.
    pub(crate) fn encode(&self, n: usize, kernels: &[Recorded]) -> wgpu::CommandBuffer {
        let mut encoder = self.encoder();
        encode_pass(&mut encoder, n, kernels);
        encoder.finish()
    }

    pub(crate) fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label: RUN })
    }

    /// Submits `commands`, and waits for the oldest submit if too many are in flight.
    pub(crate) fn submit(&self, commands: wgpu::CommandBuffer) -> Result<wgpu::SubmissionIndex, Error> {
        let index = self.queue.submit([commands]);
        let oldest = {
            let mut in_flight = lock(&self.in_flight);
            in_flight.push_back(index.clone());
            if in_flight.len() > SUBMITS_IN_FLIGHT { in_flight.pop_front() } else { None }
        };
        match oldest {
            Some(oldest) => self.wait_for(Some(oldest))?,
            None => self.check()?,
        }
        Ok(index)
    }

    /// Waits for one submission, or for all if `None`.
    pub(crate) fn wait_for(&self, submission_index: Option<wgpu::SubmissionIndex>) -> Result<(), Error> {
        let waited = self.device.poll(wgpu::PollType::Wait { submission_index, timeout: None });
        self.check()?;
        waited.map(|_| ()).map_err(|error| self.failed(error.to_string()))
    }

    pub(crate) fn block_of(&self, persistent: &Persistent) -> Result<Arc<Block>, Error> {
        self.memory.of(persistent, || self.allocate(persistent.name(), persistent.allocated_bytes()))
    }

    pub(super) fn allocate(&self, buffer: &str, len_bytes: usize) -> Result<Block, Error> {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let size = words(len_bytes);
        self.check_buffer(buffer, size)?;
        let no_room = self.no_room(buffer, size);
        let count = self.memory.count(buffer, size as usize)?;
        let descriptor = wgpu::BufferDescriptor { label: Some(buffer), size, usage, mapped_at_creation: false };
        let made = self.with_room(|| self.device.create_buffer(&descriptor)).ok_or(no_room)?;
        self.check()?;
        Ok(Block { buffer: made, _count: count })
    }

    /// Creates a staging buffer, which is not part of any plan.
    pub(crate) fn create_staging(&self, descriptor: &wgpu::BufferDescriptor<'_>) -> Result<wgpu::Buffer, Error> {
        self.check_buffer(STAGING, descriptor.size)?;
        let made = self.with_room(|| self.device.create_buffer(descriptor));
        let made = made.ok_or_else(|| self.no_room(STAGING, descriptor.size))?;
        self.check()?;
        Ok(made)
    }

    fn check_buffer(&self, name: &str, len_bytes: u64) -> Result<(), Error> {
        let limit_bytes = self.device.limits().max_buffer_size;
        if len_bytes <= limit_bytes {
            return Ok(());
        }
        Err(Error::BufferLimit { buffer: name.to_owned(), len_bytes, adapter: self.name.clone(), limit_bytes })
    }

    /// An error if the driver has reported one since the device was opened.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.failure.reported().map_or(Ok(()), |report| Err(self.failed_as(report)))
    }

    /// The error for a failure that this crate has noticed itself.
    pub(crate) fn failed(&self, reason: String) -> Error {
        self.failed_as(self.failure.of_now(reason))
    }

    fn failed_as(&self, report: FailedWork) -> Error {
        // The loss of a device, from which other errors follow, is only reported to a caller that waits.
        let _ = self.device.poll(wgpu::PollType::Wait { submission_index: None, timeout: Some(Duration::from_secs(1)) });
        let FailedWork { during, reason, .. } = self.failure.reported().unwrap_or(report);
        Error::DeviceFailed { device: self.name.clone(), during, reason }
    }
}

/// Encodes `n` replays of the kernels as one compute pass.
pub(crate) fn encode_pass(encoder: &mut wgpu::CommandEncoder, n: usize, kernels: &[Recorded]) {
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label: RUN, timestamp_writes: None });
    encode_all(std::iter::repeat_n(kernels, n).flatten(), &mut pass);
}

/// An opened device.
#[derive(Debug)]
pub(crate) struct Opened {
    device: wgpu::Device,
    queue: wgpu::Queue,
    coop: Option<CoopShape>,
    /// Whether products of f16 may be accumulated in f16.
    pub(crate) f16_accumulation: bool,
    failure: Failure,
}

impl Opened {
    /// Checks that the device's cooperative matrices compute correctly, if it has any.
    ///
    /// # Errors
    /// A description of what is wrong with them. The device may be lost then.
    pub(crate) fn check_coop(&self) -> Result<(), String> {
        if self.coop.is_none() {
            return Ok(());
        }
        let recorder = Recorder::new(&self.device).with_coop(self.coop).with_matmul_family(MatmulFamily::Coop);
        recorder.and_then(|mut recorder| recorder.check_products(&self.queue)).map_err(|error| error.to_string())?;
        self.failure.reported().map_or(Ok(()), |report| Err(report.reason))
    }
}

/// Opens an adapter with all features that the kernels can use; with its cooperative matrices only if `uses_coop`.
pub(crate) fn request_device(adapter: &wgpu::Adapter, uses_coop: bool) -> Result<Opened, wgpu::RequestDeviceError> {
    let wanted = wgpu::Features::SHADER_F16
        | wgpu::Features::SHADER_INT64
        | wgpu::Features::SUBGROUP
        | wgpu::Features::TIMESTAMP_QUERY
        | wgpu::Features::PIPELINE_CACHE;
    let mut descriptor = wgpu::DeviceDescriptor {
        label: Some("brisk"),
        required_features: adapter.features() & wanted,
        required_limits: adapter.limits(),
        experimental_features: wgpu::ExperimentalFeatures::disabled(),
        memory_hints: wgpu::MemoryHints::MemoryUsage,
        trace: wgpu::Trace::Off,
    };
    let coop = if uses_coop { CoopShape::request(adapter, &mut descriptor) } else { None };
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
    let failure = Failure::of(&device);
    Ok(Opened { device, queue, coop, f16_accumulation: false, failure })
}

/// `len_bytes` rounded up to whole 4-byte words, the unit of copies and bindings.
pub(crate) fn words(len_bytes: usize) -> u64 {
    (len_bytes as u64).checked_next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT).unwrap_or(u64::MAX)
}
