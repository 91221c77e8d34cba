use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long reductions took, and how long computation waited for them: the rest of the time was hidden behind the backward pass.
#[derive(Debug, Default)]
pub struct Overlap {
    n_reductions: AtomicU64,
    reduced_bytes: AtomicU64,
    reducing_ns: AtomicU64,
    waiting_ns: AtomicU64,
}

impl Overlap {
    /// Reductions done, buckets and losses; buckets of values that were gathered among them.
    pub fn n_reductions(&self) -> u64 {
        self.n_reductions.load(Ordering::Relaxed)
    }

    /// Bytes of this replica's values in them.
    pub fn reduced_bytes(&self) -> u64 {
        self.reduced_bytes.load(Ordering::Relaxed)
    }

    /// Time within reductions, including the wait for slower replicas.
    pub fn reducing(&self) -> Duration {
        Duration::from_nanos(self.reducing_ns.load(Ordering::Relaxed))
    }

    /// Time for which the replica only waited for reductions, including the wait for slower replicas. It does not include copying
    /// values to and from the buffers in which they are reduced.
    pub fn waiting(&self) -> Duration {
        Duration::from_nanos(self.waiting_ns.load(Ordering::Relaxed))
    }

    pub(crate) fn add_reduction(&self, took: Duration, n_bytes: usize) {
        self.n_reductions.fetch_add(1, Ordering::Relaxed);
        self.reduced_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
        self.reducing_ns.fetch_add(ns(took), Ordering::Relaxed);
    }

    /// Counts the time of `wait`.
    pub(crate) fn awaited<T>(&self, wait: impl FnOnce() -> T) -> T {
        let since = Instant::now();
        let came = wait();
        self.waiting_ns.fetch_add(ns(since.elapsed()), Ordering::Relaxed);
        came
    }
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
