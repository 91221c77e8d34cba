//! The executor that runs the twins: one program at a time, on a thread pool of its own.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brisk_kernels::{Kernel, TwinArgs};

use crate::bytes::Bytes;
use crate::program::StepArg;
use crate::{Error, Persistent, Plan, Program};

#[derive(Debug)]
pub(crate) struct CpuDevice {
    name: String,
    pool: rayon::ThreadPool,
    running: Mutex<()>,
    persistents: Mutex<HashMap<u64, Entry>>,
    allocated_bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Entry {
    persistent: Persistent,
    memory: Arc<Mutex<Counted>>,
}

/// Bytes that count themselves in and out of the device's total.
#[derive(Debug)]
struct Counted {
    bytes: Bytes,
    allocated_bytes: Arc<AtomicUsize>,
    len: usize,
}

#[derive(Debug)]
pub(crate) struct CpuExecutable {
    persistents: Vec<Arc<Mutex<Counted>>>,
    slots: Mutex<Vec<Counted>>,
    steps: Vec<CpuStep>,
}

#[derive(Debug)]
struct CpuStep {
    kernel: Arc<dyn Kernel>,
    /// Buffers by index into the run's table: the persistents, then the slots.
    args: Vec<StepArg>,
}

impl CpuDevice {
    pub(crate) fn new(name: String, n_threads: usize) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(n_threads)
            .thread_name(|i| format!("brisk-cpu-{i}"))
            .build()
            .map_err(|error| Error::Open { adapter: name.clone(), reason: error.to_string() })?;
        Ok(Self { name, pool, running: Mutex::default(), persistents: Mutex::default(), allocated_bytes: Arc::default() })
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.allocated_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn compile(&self, program: &Program, plan: &Plan) -> Result<CpuExecutable, Error> {
        let mut persistents = Vec::new();
        let mut index = vec![None; program.buffers().len()];
        for (i, buffer) in program.buffers().iter().enumerate() {
            if let Some(persistent) = &buffer.persistent {
                index[i] = Some(persistents.len());
                persistents.push(self.memory_of(persistent)?);
            }
        }
        let n_persistents = persistents.len();
        for (i, index) in index.iter_mut().enumerate() {
            *index = index.or_else(|| plan.slot_of(i).map(|slot| n_persistents + slot));
        }
        let slots = plan.slot_bytes().iter().map(|&len| self.allocate("transients", len)).collect::<Result<_, _>>()?;
        let steps = program
            .steps()
            .iter()
            .map(|step| CpuStep {
                kernel: step.kernel.clone(),
                args: step
                    .args
                    .iter()
                    .map(|arg| {
                        // Every buffer that a step names is persistent or has a slot.
                        let buffer = index[arg.buffer].unwrap_or(usize::MAX);
                        StepArg { buffer, ..arg.clone() }
                    })
                    .collect(),
            })
            .collect();
        Ok(CpuExecutable { persistents, slots: Mutex::new(slots), steps })
    }

    pub(crate) fn run(&self, executable: &CpuExecutable, n: usize) {
        // One run at a time, as on a GPU's queue; so executables that share buffers never lock them crosswise.
        let _running = lock(&self.running);
        self.pool.install(|| executable.run(n));
    }

    pub(crate) fn write(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error> {
        let memory = self.memory_of(persistent)?;
        lock(&memory).bytes[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn read(&self, persistent: &Persistent, out: &mut [u8]) -> Result<(), Error> {
        let memory = self.memory_of(persistent)?;
        out.copy_from_slice(&lock(&memory).bytes[..out.len()]);
        Ok(())
    }

    fn memory_of(&self, persistent: &Persistent) -> Result<Arc<Mutex<Counted>>, Error> {
        let mut entries = lock(&self.persistents);
        entries.retain(|_, entry| !entry.persistent.is_last());
        if let Some(entry) = entries.get(&persistent.id()) {
            return Ok(entry.memory.clone());
        }
        let memory = Arc::new(Mutex::new(self.allocate(persistent.name(), persistent.len_bytes())?));
        entries.insert(persistent.id(), Entry { persistent: persistent.clone(), memory: memory.clone() });
        Ok(memory)
    }

    fn allocate(&self, buffer: &str, len: usize) -> Result<Counted, Error> {
        let bytes = Bytes::zeroed(len).ok_or_else(|| Error::OutOfMemory {
            buffer: buffer.to_owned(),
            len_bytes: len as u64,
            device: self.name.clone(),
            allocated_bytes: self.allocated_bytes() as u64,
        })?;
        self.allocated_bytes.fetch_add(len, Ordering::Relaxed);
        Ok(Counted { bytes, allocated_bytes: self.allocated_bytes.clone(), len })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.allocated_bytes.fetch_sub(self.len, Ordering::Relaxed);
    }
}

impl CpuExecutable {
    fn run(&self, n: usize) {
        let mut slots = lock(&self.slots);
        let mut persistents: Vec<_> = self.persistents.iter().map(|memory| lock(memory)).collect();
        let mut table = Table::take(&mut persistents, &mut slots);
        for _ in 0..n {
            for step in &self.steps {
                table.run(step);
            }
        }
    }
}

/// All buffers of a run, moved out of their owners for its duration and put back at its end, a panic's included.
struct Table<'a> {
    owners: Vec<&'a mut Bytes>,
    buffers: Vec<Bytes>,
}

impl<'a> Table<'a> {
    fn take(persistents: &'a mut [MutexGuard<'_, Counted>], slots: &'a mut [Counted]) -> Self {
        let owners: Vec<_> =
            persistents.iter_mut().map(|guard| &mut guard.bytes).chain(slots.iter_mut().map(|slot| &mut slot.bytes)).collect();
        let mut table = Self { owners, buffers: Vec::new() };
        table.buffers = table.owners.iter_mut().map(|owner| std::mem::take(*owner)).collect();
        table
    }

    fn run(&mut self, step: &CpuStep) {
        let written = step.args.iter().filter(|arg| arg.access.writes());
        let mut taken: Vec<_> = written.map(|arg| (arg.buffer, std::mem::take(&mut self.buffers[arg.buffer]))).collect();
        let mut args = TwinArgs::new();
        let mut outputs = taken.iter_mut();
        for arg in &step.args {
            if arg.access.writes() {
                if let Some((_, bytes)) = outputs.next() {
                    args.push_write(&mut bytes[arg.bytes.clone()]);
                }
            } else {
                args.push_read(&self.buffers[arg.buffer][arg.bytes.clone()]);
            }
        }
        step.kernel.twin(&mut args);
        drop(args);
        for (buffer, bytes) in taken {
            self.buffers[buffer] = bytes;
        }
    }
}

impl Drop for Table<'_> {
    fn drop(&mut self) {
        for (owner, bytes) in self.owners.iter_mut().zip(self.buffers.drain(..)) {
            **owner = bytes;
        }
    }
}

/// A panic of a twin is reported by the panic itself; the buffers behind the lock are whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
