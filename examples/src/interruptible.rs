//! Imports that a signal can stop.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use brisk_table::printable;
use brisk_train::{StopFlag, StopSignal};

/// The panic payload that unwinds an importer, which then removes what it has written: a progress callback has no other way to
/// stop it.
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

/// The error of rows whose import was stopped on request. The exit status of a program that returns it is that of the signal.
#[derive(Debug)]
pub struct StoppedImport {
    source: PathBuf,
    signal: Option<StopSignal>,
}

impl StoppedImport {
    /// Of the rows at `source`.
    pub fn new(source: &Path, stop: &StopFlag) -> Self {
        Self { source: source.to_owned(), signal: stop.signal() }
    }

    /// 128 plus the number of the signal.
    pub fn exit_code(&self) -> ExitCode {
        self.signal.map_or(ExitCode::FAILURE, |signal| ExitCode::from(signal.exit_status()))
    }
}

impl fmt::Display for StoppedImport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: stopped on request while it was imported", printable(&self.source))
    }
}

impl std::error::Error for StoppedImport {}
