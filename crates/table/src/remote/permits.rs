use std::sync::{Condvar, Mutex};

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
        let mut n_free = self.n_free.lock().expect(HOLDERS_DO_NOT_PANIC);
        while *n_free == 0 {
            n_free = self.freed.wait(n_free).expect(HOLDERS_DO_NOT_PANIC);
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
        *self.permits.n_free.lock().expect(HOLDERS_DO_NOT_PANIC) += 1;
        self.permits.freed.notify_one();
    }
}

const HOLDERS_DO_NOT_PANIC: &str = "no thread panics while it holds the lock";
