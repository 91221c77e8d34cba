use std::sync::{Mutex, PoisonError};

use brisk_replicate::Pending;

use super::failure::Failure;

/// Host memory that buckets share: enough for those in flight at once, rather than a copy of everything that is sent.
#[derive(Debug, Default)]
pub(crate) struct Staging(Mutex<Vec<Vec<f32>>>);

impl Staging {
    /// Memory for `len` elements with unspecified values.
    pub(crate) fn take(&self, len: usize) -> Vec<f32> {
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |values: &Vec<f32>| values.capacity() >= len;
        let smallest = (0..free.len()).filter(|&i| fits(&free[i])).min_by_key(|&i| free[i].capacity());
        let mut values = smallest.map_or_else(Vec::new, |i| free.swap_remove(i));
        drop(free);
        values.resize(len, 0.0);
        values
    }

    /// Returns the memory.
    pub(crate) fn give(&self, values: Vec<f32>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(values);
    }
}

/// An operation that one host step starts, and another waits for.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<Option<Pending<Vec<f32>>>>);

impl InFlight {
    pub(crate) fn start(&self, pending: Pending<Vec<f32>>) -> Result<(), Failure> {
        let before = self.0.lock().unwrap_or_else(PoisonError::into_inner).replace(pending);
        if before.is_some() { Err("the operation before was never awaited".into()) } else { Ok(()) }
    }

    /// Its result, if it was started.
    pub(crate) fn finish(&self) -> Result<Option<Vec<f32>>, Failure> {
        let pending = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(pending.map(Pending::wait).transpose()?)
    }
}
