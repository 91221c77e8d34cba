use brisk_kernels as kernels;

use crate::device::Device;
use crate::device::required::Required;
use crate::error::Error;
use crate::executor::Compiled;
use crate::plan::Plan;
use crate::profile::{Profile, ProfiledStep, Span, Timer};
use crate::record::program::{Program, Step};

/// A program compiled for a device, with its memory allocated and its pipelines and bind groups created.
///
/// It keeps everything it needs, so the [`Program`] may be dropped. See [`Program`] for an example.
#[derive(Debug)]
pub struct Executable {
    device: Device,
    plan: Plan,
    name: String,
    /// The kernels, for profiles.
    steps: Vec<ProfiledStep>,
    compiled: Box<dyn Compiled>,
    required: Required,
}

impl Executable {
    pub(crate) fn compile(device: &Device, program: &Program) -> Result<Self, Error> {
        let cut = program.cut_to(device.max_binding_bytes());
        let program = cut.as_ref().unwrap_or(program);
        let plan = program.plan()?;
        check_bindings(device, program)?;
        let compiled = device.executor().clone().compile(program, &plan)?;
        let step = |(i, step): (usize, &Step)| ProfiledStep {
            name: step.kernel.name(),
            cost: step.kernel.cost(),
            dispatches: compiled.dispatches(i),
        };
        let steps = program.steps.iter().enumerate().map(step).collect();
        Ok(Self {
            device: device.clone(),
            plan,
            name: program.name().to_owned(),
            steps,
            compiled,
            required: Required::of(program),
        })
    }

    /// Replays the program `n` times. On a GPU this returns when the last replay has been submitted, with many replays per submit
    /// and nothing read back; a later [`Device::read`] or [`Device::wait`] waits. On the CPU it returns when the last replay is
    /// done. If the program has [host steps](crate::HostStep), they run in each replay.
    ///
    /// # Cost
    /// On a GPU up to 512 dispatches go into one submit, and up to four submits are in flight before this waits for the oldest.
    ///
    /// # Errors
    /// [`Error::Unwritten`] if a [required](crate::Persistent::required) buffer has not been written; [`Error::DeviceFailed`];
    /// [`Error::HostStep`], which ends the replay at that step.
    ///
    /// # Panics
    /// On the CPU with the panic of a kernel's twin, which is its bug. No buffer is lost, and the device stays usable.
    pub fn run(&self, n: usize) -> Result<(), Error> {
        self.required.check(&self.device)?;
        self.compiled.run(n)?;
        self.required.note_run(&self.device, n);
        Ok(())
    }

    /// Replays the program `n` times as [`run`](Self::run) does, and measures the time of each kernel. The first profile on a
    /// device also measures its [`roofline`](Device::roofline).
    ///
    /// On a GPU each kernel is a separate pass between two timestamps, or, if the adapter has no timestamps, a submit that is
    /// waited for: so it takes longer than a run. The first replay is slower than the rest, so call `run(1)` before profiling.
    ///
    /// # Errors
    /// [`Error::Unwritten`]; [`Error::DeviceFailed`]; [`Error::OutOfMemory`] if there is no room for timestamps; those of
    /// [`Device::roofline`].
    ///
    /// # Panics
    /// As [`run`](Self::run).
    pub fn profile(&self, n: usize) -> Result<Profile, Error> {
        let roofline = self.device.roofline()?;
        let (timer, spans) = self.spans(n)?;
        let device = self.device.info().clone();
        Ok(Profile::new(self.name.clone(), device, n, roofline, self.steps.clone(), (timer, spans)))
    }

    /// Replays `n` times and returns when each kernel ran.
    pub(crate) fn spans(&self, n: usize) -> Result<(Timer, Vec<Span>), Error> {
        self.required.check(&self.device)?;
        let spans = self.compiled.profile(n)?;
        self.required.note_run(&self.device, n);
        Ok(spans)
    }

    /// Its memory plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The device it runs on.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

/// Checks that each argument fits into one binding.
fn check_bindings(device: &Device, program: &Program) -> Result<(), Error> {
    let limit_bytes = device.max_binding_bytes() as u64;
    for step in program.steps.iter().filter(|step| step.host.is_none()) {
        if let Some(arg) = step.args.iter().find(|arg| arg.bytes.len() as u64 > limit_bytes) {
            let (kernel, len_bytes, adapter) = (step.kernel.name(), arg.bytes.len() as u64, device.info().name.clone());
            return Err(kernels::Error::BindingLimit { kernel, arg: arg.name, len_bytes, adapter, limit_bytes }.into());
        }
    }
    Ok(())
}
