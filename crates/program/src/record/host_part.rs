//! Programs as executors run them: kernels without interruption, and host steps between them.

use std::error::Error as StdError;
use std::ops::Range;
use std::sync::Arc;

use brisk_kernels::{Access, Arg};

use crate::error::Error;
use crate::record::host_step::{HostArgs, HostBuffers, HostStep};
use crate::record::program::Program;

/// Kernels that run without interruption, and the host step after them, whose index is the end of `kernels`.
#[derive(Debug)]
pub(crate) struct HostPart {
    pub(crate) kernels: Range<usize>,
    pub(crate) host: Option<RecordedHost>,
}

/// A host step as it was recorded.
#[derive(Debug)]
pub(crate) struct RecordedHost {
    program: Arc<str>,
    step: Arc<dyn HostStep>,
    args: Vec<Arg>,
}

impl RecordedHost {
    /// Whether it writes nothing to the device.
    pub(crate) fn only_reads(&self) -> bool {
        self.args.iter().all(|arg| arg.access == Access::Read)
    }

    pub(crate) fn run(&self, buffers: &mut dyn HostBuffers) -> Result<(), Error> {
        let name = self.step.name();
        let failed = |source: Box<dyn StdError + Send + Sync>| match source.downcast::<Error>() {
            // An error of the device is returned as it is.
            Ok(error) => *error,
            Err(cause) => Error::HostStep { program: self.program.to_string(), step: name, cause: cause.into() },
        };
        self.step.run(&mut HostArgs::new(name, &self.args, buffers)).map_err(failed)
    }
}

/// The parts of a program; empty if it has no host steps.
pub(crate) fn parts_of(program: &Program) -> Vec<HostPart> {
    let name: Arc<str> = program.name().into();
    let (mut parts, mut first) = (Vec::new(), 0);
    for (at, step) in program.steps.iter().enumerate() {
        if let Some(host) = &step.host {
            let host = Some(RecordedHost { program: name.clone(), step: host.clone(), args: step.kernel.args() });
            parts.push(HostPart { kernels: first..at, host });
            first = at + 1;
        }
    }
    if !parts.is_empty() {
        parts.push(HostPart { kernels: first..program.n_kernels(), host: None });
    }
    parts
}
