use std::sync::{Condvar, Mutex};

use crate::lock::{lock, wait};

/// Limits how many requests are under way.
#[derive(Debug)]
pub(super) struct Permits {
    n_free: Mutex<usize>,
    freed: Condvar,
}

impl Permits {
    pub(super) fn new(n: usize) -> Self {
        Self { n_free: Mutex::new(n), freed: Condvar::new() }
    }

    /// Waits for a permit, which is given back when the result is dropped.
    pub(super) fn take(&self) -> Permit<'_> {
        let mut n_free = lock(&self.n_free);
        while *n_free == 0 {
            n_free = wait(&self.freed, n_free);
        }
        *n_free -= 1;
        Permit { permits: self }
    }
}

#[derive(Debug)]
pub(super) struct Permit<'a> {
    permits: &'a Permits,
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        *lock(&self.permits.n_free) += 1;
        self.permits.freed.notify_one();
    }
}
