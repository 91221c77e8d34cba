//! Imports that a signal can stop.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use brisk_train::StopFlag;

/// The panic payload that unwinds an importer, which then removes what it has written: a progress callback has no other way to stop it.
struct Interrupted;

/// Does `work`, which calls [`check`] from time to time; `None` if a stop was requested meanwhile.
pub fn interruptible<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(thrown) if thrown.is::<Interrupted>() => None,
        Err(thrown) => resume_unwind(thrown),
    }
}

/// Ends the work of [`interruptible`] if a stop was requested.
pub fn check(stop: &StopFlag) {
    if stop.is_requested() {
        resume_unwind(Box::new(Interrupted));
    }
}
