//! The executor that replays WGSL dispatches through wgpu.

pub(crate) mod device;
mod executable;
pub(crate) mod failure;
pub(crate) mod host;
pub(crate) mod pipeline_cache;
pub(crate) mod profile;
pub(crate) mod transfer;
pub(crate) mod uploads;

use std::sync::{Arc, Mutex};

use brisk_kernels::gpu::Recorded;

use crate::error::Error;
use crate::executor::{Compiled, Executor, Staging};
use crate::gpu::device::GpuDevice;
use crate::gpu::executable::GpuExecutable;
use crate::gpu::uploads::Ring;
use crate::memory::{Allocations, lock};
use crate::plan::Plan;
use crate::plan::layout::Place;
use crate::profile::{Span, Timer};
use crate::record::persistent::Persistent;
use crate::record::program::Program;

/// Dispatches in one submit: enough to make its fixed cost small, few enough not to trigger a driver's watchdog.
const DISPATCHES_PER_SUBMIT: usize = 512;
impl Executor for GpuDevice {
    fn memory(&self) -> &dyn Allocations {
        &self.memory
    }

    fn compile(self: Arc<Self>, program: &Program, plan: &Plan) -> Result<Box<dyn Compiled>, Error> {
        self.check()?;
        program.steps.iter().try_for_each(|step| self.check_args(program, step))?;
        self.memory.check_room(program, plan)?;
        let slots = plan.slots.iter().map(|slot| self.allocate(&slot.name, slot.len_bytes).map(Arc::new));
        let slots = slots.collect::<Result<Vec<_>, _>>()?;
        let mut blocks = Vec::with_capacity(program.buffers.len());
        for (i, buffer) in program.buffers.iter().enumerate() {
            blocks.push(match &buffer.persistent {
                Some(persistent) => Some((self.block_of(persistent)?, 0)),
                None => plan.place_of(i).map(|Place { slot, start_bytes }| (slots[slot].clone(), start_bytes)),
            });
        }
        let kernels = program.steps.iter().map(|step| match step.host {
            None => self.prepare(step, &blocks),
            Some(_) => Ok(Recorded::default()),
        });
        let kernels = kernels.collect::<Result<Vec<_>, _>>()?;
        let parts = self.parts(program, &blocks)?;
        let n_dispatches = kernels.iter().map(Recorded::n_dispatches).sum();
        self.check()?;
        if let Some(cache) = &self.cache {
            cache.save(lock(&self.recorder).n_pipelines());
        }
        let name = program.name().into();
        let blocks = blocks.into_iter().flatten().map(|(block, _)| block).collect();
        let (device, replaying) = (self.clone(), Mutex::default());
        Ok(Box::new(GpuExecutable { device, name, kernels, parts, replaying, n_dispatches, _blocks: blocks }))
    }

    fn staging(self: Arc<Self>, slot_bytes: usize, n_slots: usize) -> Result<Box<dyn Staging>, Error> {
        Ok(Box::new(Ring::new(self, slot_bytes, n_slots)?))
    }

    fn write(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check()?;
        let block = self.block_of(persistent)?;
        self.write_at(&block, start, bytes, start + bytes.len() == persistent.len_bytes())
    }

    fn read(&self, persistent: &Persistent, out: &mut [u8]) -> Result<(), Error> {
        self.check()?;
        let block = self.block_of(persistent)?;
        self.read_at(&block, 0, out)
    }

    fn wait(&self) -> Result<(), Error> {
        self.wait_for(None)
    }
}

impl Compiled for GpuExecutable {
    fn dispatches(&self, step: usize) -> Vec<&'static str> {
        self.kernels[step].labels().collect()
    }

    fn run(&self, n: usize) -> Result<(), Error> {
        let device = &*self.device;
        device.check()?;
        device.expect_run(&self.name);
        if !self.parts.is_empty() {
            return device.run_with_host(self, n);
        }
        if self.n_dispatches == 0 {
            return Ok(());
        }
        let n_per_submit = (DISPATCHES_PER_SUBMIT / self.n_dispatches).max(1);
        let mut n_left = n;
        while n_left > 0 {
            let n_now = n_left.min(n_per_submit);
            n_left -= n_now;
            device.submit(device.encode(n_now, &self.kernels))?;
        }
        Ok(())
    }

    fn profile(&self, n: usize) -> Result<(Timer, Vec<Span>), Error> {
        self.device.profile(self, n)
    }
}
