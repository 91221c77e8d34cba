use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use brisk_tensor::Persistent;
use brisk_tensor::program::Device;

/// Whether the newest values of a buffer are its initial ones, which the host has, or were written on a device since.
#[derive(Debug, Default)]
pub(crate) struct Newest {
    /// Writes to the buffer, on all devices, when the initial values were the newest.
    n_writes: AtomicU64,
    /// Whether the initial values have changed since they were written to a device.
    is_changed: AtomicBool,
}

impl Newest {
    /// The device that has newer values than the initial ones.
    pub(crate) fn device(&self, values: &Persistent) -> Option<Device> {
        let last = values.last_write().filter(|&(_, n_writes)| n_writes > self.n_writes.load(Ordering::Relaxed));
        last.map(|(device, _)| device)
    }

    /// Whether `device` has the initial values, and they are the newest.
    pub(crate) fn is_initial_on(&self, values: &Persistent, device: &Device) -> bool {
        let is_there = values.last_write().is_some_and(|(last, _)| last.is_same(device));
        is_there && self.device(values).is_none() && !self.is_changed.load(Ordering::Relaxed)
    }

    /// The initial values have just been written to a device, or read from it.
    pub(crate) fn set_equal(&self, values: &Persistent) {
        self.set(values, false);
    }

    /// The initial values have been changed, and are the newest.
    pub(crate) fn set_initial(&self, values: &Persistent) {
        self.set(values, true);
    }

    fn set(&self, values: &Persistent, is_changed: bool) {
        self.n_writes.store(values.last_write().map_or(0, |(_, n_writes)| n_writes), Ordering::Relaxed);
        self.is_changed.store(is_changed, Ordering::Relaxed);
    }
}

impl Clone for Newest {
    fn clone(&self) -> Self {
        let (n_writes, is_changed) = (self.n_writes.load(Ordering::Relaxed), self.is_changed.load(Ordering::Relaxed));
        Self { n_writes: n_writes.into(), is_changed: is_changed.into() }
    }
}
