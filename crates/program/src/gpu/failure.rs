//! Errors that a driver reports outside any call, mainly the loss of a device.

use std::fmt;
use std::sync::{Arc, Mutex};

use brisk_kernels::wgpu;

use crate::memory::lock;

/// The first error that a driver reported outside any call, on which wgpu would otherwise panic. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failure {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    work: Mutex<Work>,
    reported: Mutex<Option<FailedWork>>,
}

/// The driver's error, and the work that the device was given last.
#[derive(Debug, Clone)]
pub(crate) struct FailedWork {
    cause: Cause,
    pub(crate) reason: String,
    pub(crate) during: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Error,
    Lost,
}

/// The work that a device was given last: a driver does not say which work failed.
#[derive(Debug, Default)]
pub(crate) enum Work {
    #[default]
    Nothing,
    Compile(&'static str),
    Run(Arc<str>),
}

impl Failure {
    /// Listens for errors of `device` as long as it exists.
    pub(crate) fn of(device: &wgpu::Device) -> Self {
        let failure = Self::default();
        let seen = failure.clone();
        device.on_uncaptured_error(Arc::new(move |error| seen.report(Cause::Error, error.to_string())));
        let seen = failure.clone();
        device.set_device_lost_callback(move |reason, message| {
            let how = if reason == wgpu::DeviceLostReason::Destroyed { "destroyed" } else { "lost" };
            seen.report(Cause::Lost, format!("device {how}: {message}"));
        });
        failure
    }

    /// Sets the work that comes next, for the message of a failure.
    pub(crate) fn expect(&self, work: Work) {
        *lock(&self.inner.work) = work;
    }

    /// Keeps the first report, except that the loss of the device replaces an earlier error, which only followed from it.
    fn report(&self, cause: Cause, reason: String) {
        let report = FailedWork { cause, ..self.of_now(reason) };
        let mut reported = lock(&self.inner.reported);
        if reported.as_ref().is_none_or(|earlier| earlier.cause < cause) {
            *reported = Some(report);
        }
    }

    /// A report of a failure that this crate has noticed itself.
    pub(crate) fn of_now(&self, reason: String) -> FailedWork {
        FailedWork { cause: Cause::Error, reason, during: lock(&self.inner.work).to_string() }
    }

    /// The report, if there is one.
    pub(crate) fn reported(&self) -> Option<FailedWork> {
        lock(&self.inner.reported).clone()
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("before its first program"),
            Self::Compile(kernel) => write!(f, "at or after compiling kernel `{kernel}`"),
            Self::Run(program) => write!(f, "in or after a run of `{program}`"),
        }
    }
}
