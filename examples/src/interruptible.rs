//! Imports that a signal can stop.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

use brisk_train::{StopFlag, StopSignal};

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

/// The error of a program that ends because a stop was requested: the exit status is that of the signal.
#[derive(Debug)]
pub struct Stopped {
    message: String,
    signal: Option<StopSignal>,
}

impl Stopped {
    /// With a message that says what is left undone.
    pub fn new(stop: &StopFlag, message: String) -> Self {
        Self { message, signal: stop.signal() }
    }

    /// 128 plus the number of the signal.
    pub fn exit_code(&self) -> ExitCode {
        self.signal.map_or(ExitCode::FAILURE, |signal| ExitCode::from(signal.exit_status()))
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Stopped {}
