//! The executor that runs the twins: one program at a time, on the calling thread and the executor's helper threads.

pub(crate) mod bytes;
mod packed;

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

use brisk_kernels::{Arg, Kernel, OnTeam, STREAMED_BYTES, Team, TwinArgs, copy_streaming};
use rayon::prelude::*;

use crate::cpu::bytes::Bytes;
use crate::cpu::packed::{PackedCopies, Part};
use crate::error::Error;
use crate::executor::{Compiled, Executor, Staging};
use crate::memory::{Allocations, Count, Memory, lock};
use crate::plan::Plan;
use crate::plan::layout::Place;
use crate::profile::{Span, Timer, ns_since};
use crate::record::host_part::{HostPart, parts_of};
use crate::record::host_step::HostBuffers;
use crate::record::persistent::Persistent;
use crate::record::program::{Program, StepArg};
use crate::record::upload::Upload;

#[derive(Debug)]
pub(crate) struct CpuDevice {
    name: String,
    team: Team,
    running: Mutex<()>,
    memory: Memory<Mutex<Block>>,
}

#[derive(Debug)]
struct Block {
    bytes: Bytes,
    packed: PackedCopies,
    _count: Count,
}

#[derive(Debug)]
struct CpuExecutable {
    device: Arc<CpuDevice>,
    persistents: Vec<Arc<Mutex<Block>>>,
    /// Those that kernels write.
    written: Vec<usize>,
    slots: Mutex<Vec<Block>>,
    steps: Vec<CpuStep>,
    parts: Vec<HostPart>,
    /// Held during a replay with host steps; the slots are not locked while these run.
    replaying: Mutex<()>,
}

#[derive(Debug)]
struct CpuStep {
    kernel: Arc<dyn Kernel>,
    /// What the kernel declares.
    declared: Vec<Arg>,
    /// The buffers as indices into the run's table: the persistent buffers, then the slots.
    args: Vec<StepArg>,
    /// The argument that is packed, if the program does not write it: its buffer, and which part.
    packed: Option<(usize, Part)>,
}

/// Buffers of at least this size are read by all threads of the device, as one thread does not use the whole memory bandwidth.
const PARALLEL_COPY_BYTES: usize = 4 << 20;

impl CpuDevice {
    pub(crate) fn new(name: String, n_threads: usize, memory_limit: Option<usize>) -> Result<Self, Error> {
        let team = Team::new("brisk-cpu", n_threads)
            .map_err(|error| Error::Open { adapter: name.clone(), reason: error.to_string() })?;
        let memory = Memory::new(name.clone(), memory_limit);
        Ok(Self { name, team, running: Mutex::default(), memory })
    }

    /// Replays the program, and calls `done` after each step.
    fn replay(&self, executable: &CpuExecutable, n: usize, mut done: impl FnMut(usize) + Send) -> Result<(), Error> {
        if executable.parts.is_empty() {
            self.on_team(|| executable.run_kernels(n, 0..executable.steps.len(), &mut done));
            return Ok(());
        }
        let _replay = lock(&executable.replaying);
        for _ in 0..n {
            for part in &executable.parts {
                self.on_team(|| executable.run_kernels(1, part.kernels.clone(), &mut done));
                if let Some(host) = &part.host {
                    host.run(&mut OnCpu { executable, args: &executable.steps[part.kernels.end].args })?;
                    done(part.kernels.end);
                }
            }
        }
        Ok(())
    }

    fn on_team(&self, work: impl FnOnce() + Send) {
        // One run at a time, as on a GPU's queue: executables that lock shared buffers in different orders would deadlock.
        let run = || {
            let _running = lock(&self.running);
            self.team.lead(work);
        };
        if rayon::current_thread_index().is_none() {
            return run();
        }
        // A twin from another crate may use rayon. A rayon worker that waits takes up other jobs of its pool, and one of those
        // may be a run on this device, which would then wait for the run below it on the same stack. So from a rayon worker, the
        // run is done on a new thread.
        std::thread::scope(|scope| scope.spawn(run).join().unwrap_or_else(|panic| resume_unwind(panic)));
    }

    fn block_of(&self, persistent: &Persistent) -> Result<Arc<Mutex<Block>>, Error> {
        self.memory.of(persistent, || self.allocate(persistent.name(), persistent.allocated_bytes()).map(Mutex::new))
    }

    fn allocate(&self, buffer: &str, len_bytes: usize) -> Result<Block, Error> {
        let count = self.memory.count(buffer, len_bytes)?;
        let bytes = Bytes::zeroed(len_bytes).ok_or_else(|| Error::OutOfMemory {
            buffer: buffer.to_owned(),
            len_bytes: len_bytes as u64,
            device: self.name.clone(),
            allocated_bytes: (self.memory.counted_bytes() - len_bytes) as u64,
        })?;
        Ok(Block { bytes, packed: PackedCopies::default(), _count: count })
    }
}

impl Executor for CpuDevice {
    fn memory(&self) -> &dyn Allocations {
        &self.memory
    }

    fn compile(self: Arc<Self>, program: &Program, plan: &Plan) -> Result<Box<dyn Compiled>, Error> {
        self.memory.check_room(program, plan)?;
        let slots = plan.slots.iter().map(|slot| self.allocate(&slot.name, slot.len_bytes)).collect::<Result<_, _>>()?;
        let persistents = program.persistents().map(|persistent| self.block_of(persistent)).collect::<Result<Vec<_>, _>>()?;
        let places = table_places(program, plan, persistents.len());
        let placed = |arg: &StepArg| {
            let Place { slot, start_bytes } = places[arg.buffer];
            let bytes = start_bytes + arg.bytes.start..start_bytes + arg.bytes.end;
            StepArg { buffer: slot, bytes, ..arg.clone() }
        };
        let placed: Vec<Vec<StepArg>> = program.steps.iter().map(|step| step.args.iter().map(placed).collect()).collect();
        let writes = placed.iter().flatten().filter(|arg| arg.access.writes() && arg.buffer < persistents.len());
        let written: Vec<usize> = writes.map(|arg| arg.buffer).collect::<BTreeSet<_>>().into_iter().collect();
        let packed = |kernel: &dyn Kernel, args: &[StepArg]| {
            let packing = kernel.packing()?;
            let StepArg { buffer, ref bytes, .. } = args[packing.arg];
            let is_constant = buffer < persistents.len() && !written.contains(&buffer);
            let part = is_constant.then(|| Part { bytes: bytes.clone(), packing })?;
            // They are not among the planned buffers, so there are none where memory is limited.
            self.memory.limit_bytes().is_none().then_some((buffer, part))
        };
        let steps = program.steps.iter().zip(placed).map(|(step, args)| CpuStep {
            kernel: step.kernel.clone(),
            declared: step.kernel.args(),
            packed: packed(&*step.kernel, &args),
            args,
        });
        let (steps, parts) = (steps.collect(), parts_of(program));
        let (slots, replaying) = (Mutex::new(slots), Mutex::default());
        Ok(Box::new(CpuExecutable { persistents, written, slots, steps, parts, replaying, device: self.clone() }))
    }

    fn staging(self: Arc<Self>, _: usize, _: usize) -> Result<Box<dyn Staging>, Error> {
        Ok(Box::new(self))
    }

    fn write(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error> {
        let block = self.block_of(persistent)?;
        let mut block = lock(&block);
        block.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        block.packed.expire();
        Ok(())
    }

    fn read(&self, persistent: &Persistent, out: &mut [u8]) -> Result<(), Error> {
        let block = self.block_of(persistent)?;
        let block = lock(&block);
        let bytes = &block.bytes[..out.len()];
        // While the team is busy with a run, the loop below runs on rayon. A rayon worker that waits takes up other jobs, and one
        // of those may lock the same block.
        if bytes.len() < PARALLEL_COPY_BYTES || rayon::current_thread_index().is_some() {
            out.copy_from_slice(bytes);
            return Ok(());
        }
        let piece_bytes = bytes.len().div_ceil(self.team.n_threads());
        let copy = if bytes.len() < STREAMED_BYTES { <[u8]>::copy_from_slice } else { copy_streaming };
        let pieces = out.par_chunks_mut(piece_bytes).zip(bytes.par_chunks(piece_bytes));
        self.team.lead(|| pieces.for_each_on_team(|(out, bytes)| copy(out, bytes)));
        Ok(())
    }

    fn wait(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// On the CPU a write is one copy, which needs no memory between.
impl Staging for Arc<CpuDevice> {
    fn write(&mut self, uploads: &[Upload<'_>]) -> Result<(), Error> {
        uploads.iter().try_for_each(|upload| Executor::write(&**self, upload.to, upload.range().start, upload.bytes))
    }
}

/// The place of each of the program's buffers in a run's table.
fn table_places(program: &Program, plan: &Plan, n_persistents: usize) -> Vec<Place> {
    let mut persistent = (0..n_persistents).map(|slot| Place { slot, start_bytes: 0 });
    let place = |(i, buffer): (usize, &crate::record::program::Buffer)| match &buffer.persistent {
        Some(_) => persistent.next(),
        None => plan.place_of(i).map(|place| Place { slot: n_persistents + place.slot, ..place }),
    };
    // A transient that no kernel uses has no place, and no step looks it up.
    let places = program.buffers.iter().enumerate().map(place);
    places.map(|place| place.unwrap_or(Place { slot: usize::MAX, start_bytes: 0 })).collect()
}

impl Compiled for CpuExecutable {
    fn dispatches(&self, _: usize) -> Vec<&'static str> {
        Vec::new()
    }

    fn run(&self, n: usize) -> Result<(), Error> {
        self.device.replay(self, n, |_| ())
    }

    fn profile(&self, n: usize) -> Result<(Timer, Vec<Span>), Error> {
        let mut spans = Vec::with_capacity(n * self.steps.len());
        let start = Instant::now();
        let mut start_ns = 0;
        self.device.replay(self, n, |step| {
            let end_ns = ns_since(start);
            spans.push(Span { step, start_ns, len_ns: end_ns - start_ns });
            start_ns = end_ns;
        })?;
        Ok((Timer::Clock, spans))
    }
}

impl CpuExecutable {
    /// Replays some of the kernels, and calls `done` after each.
    fn run_kernels(&self, n: usize, kernels: Range<usize>, done: &mut impl FnMut(usize)) {
        let mut slots = lock(&self.slots);
        let mut persistents: Vec<_> = self.persistents.iter().map(|block| lock(block)).collect();
        // Before anything is written, so that a panic leaves no copy of what was.
        self.written.iter().for_each(|&buffer| persistents[buffer].packed.expire());
        let copies: Vec<Option<Arc<Vec<f32>>>> = self.steps[kernels.clone()]
            .iter()
            .map(|step| {
                let (buffer, part) = step.packed.as_ref()?;
                let Block { bytes, packed, .. } = &mut *persistents[*buffer];
                packed.current(part, bytes)
            })
            .collect();
        let mut table = Table::take(&mut persistents, &mut slots);
        for _ in 0..n {
            for (i, copy) in kernels.clone().zip(&copies) {
                table.run(&self.steps[i], copy.as_ref().map(|copy| &copy[..]));
                done(i);
            }
        }
    }

    /// The bytes of an argument.
    fn with_bytes<T>(&self, arg: &StepArg, f: impl FnOnce(&mut [u8]) -> T) -> T {
        let n_persistents = self.persistents.len();
        match arg.buffer.checked_sub(n_persistents) {
            None => {
                let mut block = lock(&self.persistents[arg.buffer]);
                if arg.access.writes() {
                    block.packed.expire();
                }
                f(&mut block.bytes[arg.bytes.clone()])
            }
            Some(slot) => f(&mut lock(&self.slots)[slot].bytes[arg.bytes.clone()]),
        }
    }
}

/// The arguments that a host step is given.
#[derive(Debug)]
struct OnCpu<'a> {
    executable: &'a CpuExecutable,
    args: &'a [StepArg],
}

impl HostBuffers for OnCpu<'_> {
    fn read(&mut self, arg: usize, start: usize, out: &mut [u8]) -> Result<(), Error> {
        self.executable.with_bytes(&self.args[arg], |bytes| out.copy_from_slice(&bytes[start..start + out.len()]));
        Ok(())
    }

    fn write(&mut self, arg: usize, start: usize, bytes: &[u8]) -> Result<(), Error> {
        self.executable.with_bytes(&self.args[arg], |held| held[start..start + bytes.len()].copy_from_slice(bytes));
        Ok(())
    }
}

/// All buffers of a run, moved out of their owners while it lasts and put back when it ends, even by a panic.
struct Table<'a> {
    owners: Vec<&'a mut Bytes>,
    buffers: Vec<Bytes>,
}

impl<'a> Table<'a> {
    fn take(persistents: &'a mut [MutexGuard<'_, Block>], slots: &'a mut [Block]) -> Self {
        let owners = persistents.iter_mut().map(|guard| &mut guard.bytes).chain(slots.iter_mut().map(|slot| &mut slot.bytes));
        let mut table = Self { owners: owners.collect(), buffers: Vec::new() };
        table.buffers = table.owners.iter_mut().map(|owner| std::mem::take(*owner)).collect();
        table
    }

    fn run(&mut self, step: &CpuStep, packed: Option<&[f32]>) {
        let mut written = Written::take(&mut self.buffers, &step.args);
        let Written { buffers, taken } = &mut written;
        let mut args = TwinArgs::new(&step.declared);
        let mut outputs = taken.iter_mut();
        for arg in &step.args {
            if arg.access.writes() {
                let (_, bytes) = outputs.next().expect("every argument that is written was taken");
                args.push_write(&mut bytes[arg.bytes.clone()]);
            } else {
                args.push_read(&buffers[arg.buffer][arg.bytes.clone()]);
            }
        }
        if let Some(packed) = packed {
            args.set_packed(packed);
        }
        step.kernel.twin(&mut args);
        args.check_written();
    }
}

impl Drop for Table<'_> {
    fn drop(&mut self) {
        for (owner, bytes) in self.owners.iter_mut().zip(self.buffers.drain(..)) {
            **owner = bytes;
        }
    }
}

/// The buffers that one kernel writes, taken out of the table while it runs and put back when it ends, even by a panic.
struct Written<'a> {
    buffers: &'a mut [Bytes],
    taken: Vec<(usize, Bytes)>,
}

impl<'a> Written<'a> {
    fn take(buffers: &'a mut [Bytes], args: &[StepArg]) -> Self {
        let written = args.iter().filter(|arg| arg.access.writes());
        let taken = written.map(|arg| (arg.buffer, std::mem::take(&mut buffers[arg.buffer]))).collect();
        Self { buffers, taken }
    }
}

impl Drop for Written<'_> {
    fn drop(&mut self) {
        for (buffer, bytes) in self.taken.drain(..) {
            self.buffers[buffer] = bytes;
        }
    }
}
