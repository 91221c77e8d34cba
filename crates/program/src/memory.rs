use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::persistent::WeakPersistent;
use crate::{Error, Persistent};

/// The persistent buffers that one device has given memory, and how much it holds in all. `M` is a block of its memory.
#[derive(Debug)]
pub(crate) struct Memory<M> {
    entries: Mutex<HashMap<u64, Entry<M>>>,
    allocated_bytes: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Entry<M> {
    persistent: WeakPersistent,
    block: Arc<M>,
}

/// Kept beside a block: counts it in when made, and out when dropped.
#[derive(Debug)]
pub(crate) struct Count {
    len_bytes: usize,
    allocated_bytes: Arc<AtomicUsize>,
}

impl<M> Memory<M> {
    pub(crate) fn new() -> Self {
        Self { entries: Mutex::default(), allocated_bytes: Arc::default() }
    }

    /// The block of `persistent`, made when it is first asked for.
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
        entries.insert(persistent.id(), Entry { persistent: persistent.downgrade(), block: block.clone() });
        Ok(block)
    }

    pub(crate) fn count(&self, len_bytes: usize) -> Count {
        self.allocated_bytes.fetch_add(len_bytes, Ordering::Relaxed);
        Count { len_bytes, allocated_bytes: self.allocated_bytes.clone() }
    }

    /// Bytes of all blocks now; those of persistent buffers that nobody has any more are freed first.
    pub(crate) fn allocated_bytes(&self) -> usize {
        lock(&self.entries).retain(|_, entry| entry.persistent.is_alive());
        self.counted_bytes()
    }

    /// The same, nothing freed: for messages from within an allocation.
    pub(crate) fn counted_bytes(&self) -> usize {
        self.allocated_bytes.load(Ordering::Relaxed)
    }
}

impl Drop for Count {
    fn drop(&mut self) {
        self.allocated_bytes.fetch_sub(self.len_bytes, Ordering::Relaxed);
    }
}

/// What these locks guard is whole after any panic: values are swapped in, and tables restore themselves.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
