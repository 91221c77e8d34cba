use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::Error;
use crate::plan::Plan;
use crate::record::persistent::{Persistent, WeakPersistent};
use crate::record::program::Program;

/// The persistent buffers that one device has allocated memory for, and the total it holds. `M` is a block of its memory.
#[derive(Debug)]
pub(crate) struct Memory<M> {
    device: String,
    limit_bytes: Option<usize>,
    entries: Mutex<HashMap<u64, Entry<M>>>,
    allocated_bytes: Arc<AtomicUsize>,
    n_allocations: AtomicU64,
}

#[derive(Debug)]
struct Entry<M> {
    persistent: WeakPersistent,
    block: Arc<M>,
    is_written: bool,
}

/// Stored with a block: adds its bytes to the total when created, and subtracts them when dropped.
#[derive(Debug)]
pub(crate) struct Count {
    len_bytes: usize,
    allocated_bytes: Arc<AtomicUsize>,
}

/// What a device says about its memory.
pub(crate) trait Allocations {
    /// Bytes of all blocks now; those of persistent buffers without remaining handles are freed first.
    fn allocated_bytes(&self) -> usize;

    /// Blocks that have been made so far.
    fn n_allocations(&self) -> u64;

    fn limit_bytes(&self) -> Option<usize>;

    /// Notes that a buffer with memory here has been written.
    fn set_written(&self, persistent: &Persistent);

    fn is_written(&self, persistent: &Persistent) -> bool;
}

impl<M> Allocations for Memory<M> {
    fn allocated_bytes(&self) -> usize {
        lock(&self.entries).retain(|_, entry| entry.persistent.is_alive());
        self.counted_bytes()
    }

    fn n_allocations(&self) -> u64 {
        self.n_allocations.load(Ordering::Relaxed)
    }

    fn limit_bytes(&self) -> Option<usize> {
        self.limit_bytes
    }

    fn set_written(&self, persistent: &Persistent) {
        if let Some(entry) = lock(&self.entries).get_mut(&persistent.id()) {
            entry.is_written = true;
        }
    }

    fn is_written(&self, persistent: &Persistent) -> bool {
        lock(&self.entries).get(&persistent.id()).is_some_and(|entry| entry.is_written)
    }
}

impl<M> Memory<M> {
    /// Empty, for `device`, with at most `limit_bytes`.
    pub(crate) fn new(device: String, limit_bytes: Option<usize>) -> Self {
        Self { device, limit_bytes, entries: Mutex::default(), allocated_bytes: Arc::default(), n_allocations: AtomicU64::new(0) }
    }

    /// The block of `persistent`, allocated on the first call.
    pub(crate) fn of(&self, persistent: &Persistent, make: impl FnOnce() -> Result<M, Error>) -> Result<Arc<M>, Error> {
        if persistent.is_empty() {
            return Err(Error::EmptyBuffer { buffer: persistent.name().to_owned() });
        }
        let mut entries = lock(&self.entries);
        entries.retain(|_, entry| entry.persistent.is_alive());
        if let Some(entry) = entries.get(&persistent.id()) {
            return Ok(entry.block.clone());
        }
        let block = Arc::new(make()?);
        entries.insert(persistent.id(), Entry { persistent: persistent.downgrade(), block: block.clone(), is_written: false });
        Ok(block)
    }

    /// Checks that the additional memory of `program` stays within the limit, so that one that does not fit allocates nothing.
    pub(crate) fn check_room(&self, program: &Program, plan: &Plan) -> Result<(), Error> {
        let held_bytes = self.allocated_bytes();
        let entries = lock(&self.entries);
        let new = program.persistents().filter(|persistent| !entries.contains_key(&persistent.id()));
        let needed_bytes = new.map(Persistent::allocated_bytes).fold(plan.transient_bytes(), usize::saturating_add);
        self.check_limit(program.name(), needed_bytes, held_bytes).map(|_| ())
    }

    /// Counts a block of `buffer` that is about to be allocated.
    pub(crate) fn count(&self, buffer: &str, len_bytes: usize) -> Result<Count, Error> {
        let mut held_bytes = self.counted_bytes();
        loop {
            let sum = self.check_limit(buffer, len_bytes, held_bytes)?;
            let counter = &self.allocated_bytes;
            match counter.compare_exchange_weak(held_bytes, sum, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    self.n_allocations.fetch_add(1, Ordering::Relaxed);
                    return Ok(Count { len_bytes, allocated_bytes: counter.clone() });
                }
                Err(now) => held_bytes = now,
            }
        }
    }

    /// The sum of `held_bytes` and `needed_bytes`, if it is within the limit.
    fn check_limit(&self, name: &str, needed_bytes: usize, held_bytes: usize) -> Result<usize, Error> {
        let sum = held_bytes.saturating_add(needed_bytes);
        match self.limit_bytes {
            Some(limit_bytes) if sum > limit_bytes => {
                let [needed_bytes, held_bytes, limit_bytes] = [needed_bytes, held_bytes, limit_bytes].map(|bytes| bytes as u64);
                let (name, device) = (name.to_owned(), self.device.clone());
                Err(Error::MemoryLimit { name, needed_bytes, device, held_bytes, limit_bytes })
            }
            _ => Ok(sum),
        }
    }

    /// Bytes of all blocks, without freeing any: for messages during an allocation.
    pub(crate) fn counted_bytes(&self) -> usize {
        self.allocated_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.allocated_bytes.fetch_sub(self.len_bytes, Ordering::Relaxed);
    }
}

/// Ignores poisoning: the guarded values are consistent after any panic, because they are replaced as a whole and tables restore
/// themselves.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
