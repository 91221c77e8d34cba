//! Locks whose holders do not panic.

use std::sync::{Condvar, Mutex, MutexGuard};

const HOLDERS_DO_NOT_PANIC: &str = "no thread panics while it holds the lock";

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect(HOLDERS_DO_NOT_PANIC)
}

pub(crate) fn wait<'a, T>(changed: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    changed.wait(guard).expect(HOLDERS_DO_NOT_PANIC)
}

pub(crate) fn unlocked<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().expect(HOLDERS_DO_NOT_PANIC)
}
