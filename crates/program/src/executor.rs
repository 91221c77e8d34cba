//! What a device asks of the executor below it.

use std::fmt::Debug;
use std::sync::Arc;

use crate::error::Error;
use crate::memory::Allocations;
use crate::plan::Plan;
use crate::profile::{Span, Timer};
use crate::record::persistent::Persistent;
use crate::record::program::Program;
use crate::record::upload::Upload;

/// The memory of a device, and the programs that run on it.
pub(crate) trait Executor: Debug + Send + Sync {
    fn memory(&self) -> &dyn Allocations;

    /// Allocates the memory of a planned program and creates everything that a replay needs.
    fn compile(self: Arc<Self>, program: &Program, plan: &Plan) -> Result<Box<dyn Compiled>, Error>;

    /// Staging memory: `n_slots` slots of `slot_bytes` each.
    fn staging(self: Arc<Self>, slot_bytes: usize, n_slots: usize) -> Result<Box<dyn Staging>, Error>;

    /// Sets the bytes of a buffer from `start` on.
    fn write(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error>;

    /// Reads as many bytes as `out` has, from the start of a buffer.
    fn read(&self, persistent: &Persistent, out: &mut [u8]) -> Result<(), Error>;

    /// Waits for all runs so far.
    fn wait(&self) -> Result<(), Error>;
}

/// A program that an executor has compiled.
pub(crate) trait Compiled: Debug + Send + Sync {
    /// The dispatches of a kernel; none on the CPU.
    fn dispatches(&self, step: usize) -> Vec<&'static str>;

    fn run(&self, n: usize) -> Result<(), Error>;

    /// Replays the program and returns when each kernel ran.
    fn profile(&self, n: usize) -> Result<(Timer, Vec<Span>), Error>;
}

/// Memory for values that are uploaded to a device.
pub(crate) trait Staging: Debug + Send {
    fn write(&mut self, uploads: &[Upload<'_>]) -> Result<(), Error>;
}
