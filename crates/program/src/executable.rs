use brisk_kernels as kernels;

use crate::cpu::CpuExecutable;
use crate::device::Executor;
use crate::gpu::GpuExecutable;
use crate::{Device, Error, Plan, Program};

/// A program made ready on a device: memory laid out, pipelines and bind groups made.
///
/// It keeps what it needs, so the [`Program`] may be dropped. See there for an example.
#[derive(Debug)]
pub struct Executable {
    device: Device,
    plan: Plan,
    compiled: Compiled,
}

#[derive(Debug)]
enum Compiled {
    Cpu(CpuExecutable),
    Gpu(GpuExecutable),
}

impl Executable {
    pub(crate) fn compile(device: &Device, program: &Program) -> Result<Self, Error> {
        let plan = program.plan()?;
        check_bindings(device, program)?;
        let compiled = match device.executor() {
            Executor::Cpu(cpu) => Compiled::Cpu(cpu.compile(program, &plan)?),
            Executor::Gpu(gpu) => Compiled::Gpu(gpu.compile(program, &plan)?),
        };
        Ok(Self { device: device.clone(), plan, compiled })
    }

    /// Replays the program `n` times. On a GPU this returns when the last replay has been handed over, many to a submit, with
    /// nothing read back; a later [`Device::read`] or [`Device::wait`] waits. On the CPU it returns when the last replay is done.
    ///
    /// # Cost
    /// On a GPU up to 512 dispatches go into a submit, and up to four submits are under way before this waits for the oldest.
    ///
    /// # Errors
    /// [`Error::DeviceFailed`].
    ///
    /// # Panics
    /// On the CPU with the panic of a kernel's twin, which is a mistake in the kernel. No buffer is lost, the device goes on.
    pub fn run(&self, n: usize) -> Result<(), Error> {
        match (&self.compiled, self.device.executor()) {
            (Compiled::Cpu(compiled), Executor::Cpu(cpu)) => {
                cpu.run(compiled, n);
                Ok(())
            }
            (Compiled::Gpu(compiled), Executor::Gpu(gpu)) => gpu.run(compiled, n),
            _ => unreachable!("an executable keeps the device that compiled it"),
        }
    }

    /// The memory it was given.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Whether each argument can be bound at once.
fn check_bindings(device: &Device, program: &Program) -> Result<(), Error> {
    let limit_bytes = device.max_binding_bytes() as u64;
    for step in program.steps() {
        if let Some(arg) = step.args.iter().find(|arg| arg.bytes.len() as u64 > limit_bytes) {
            let (kernel, len_bytes, adapter) = (step.kernel.name(), arg.bytes.len() as u64, device.info().name.clone());
            return Err(kernels::Error::BindingLimit { kernel, arg: arg.name, len_bytes, adapter, limit_bytes }.into());
        }
    }
    Ok(())
}
