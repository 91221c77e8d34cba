use std::any::Any;
use std::error::Error as StdError;
use std::fmt::Debug;

use brisk_kernels::bytemuck::{self, Pod};
use brisk_kernels::{Access, Adapter, Arg, Dispatch, Kernel, Signature, TwinArgs};

use crate::error::Error;

/// Work of the host in the middle of a program, which no kernel can do, such as a sum over replicas on other machines: it reads
/// values from the device and writes values back. [`Program::push_host`](crate::Program::push_host) records one.
///
/// The plan treats it as a kernel: what it reads is available when it runs, and what it writes to the kernels after it.
///
/// # When it runs
/// Once per replay, in order with the other host steps, on the thread that called [`Executable::run`](crate::Executable::run),
/// which holds no lock of the device meanwhile. On a GPU a step that only reads does not block the device: its arguments are
/// copied at its place in the program, and it runs while the kernels up to the next host step are in flight. A step that writes
/// runs once all work before it is done.
pub trait HostStep: Any + Debug + Send + Sync {
    /// Its name in errors and profiles: `all_reduce`.
    fn name(&self) -> &'static str;

    /// The argument list, as that of a [`Kernel`]; scratch is refused.
    fn args(&self) -> Vec<Arg>;

    /// Runs the step.
    ///
    /// # Errors
    /// Any error of the implementation: it ends the run, as [`Error::HostStep`] unless it is an [`Error`] itself.
    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

/// The arguments of a [`HostStep`], on the device.
#[derive(Debug)]
pub struct HostArgs<'a> {
    name: &'static str,
    args: &'a [Arg],
    buffers: &'a mut dyn HostBuffers,
}

/// Access to the arguments of a host step, implemented by each executor.
pub(crate) trait HostBuffers: Debug {
    /// Copies the bytes of argument `arg` from `start` on.
    fn read(&mut self, arg: usize, start: usize, out: &mut [u8]) -> Result<(), Error>;

    /// Replaces the bytes of argument `arg` from `start` on.
    fn write(&mut self, arg: usize, start: usize, bytes: &[u8]) -> Result<(), Error>;
}

impl<'a> HostArgs<'a> {
    pub(crate) fn new(name: &'static str, args: &'a [Arg], buffers: &'a mut dyn HostBuffers) -> Self {
        Self { name, args, buffers }
    }

    /// Copies elements of argument `arg` from `start` on, until `out` is full.
    ///
    /// # Errors
    /// [`Error::HostArg`] if there is no such argument, it is not read, or there are fewer elements; [`Error::DeviceFailed`].
    pub fn read<T: Pod>(&mut self, arg: usize, start: usize, out: &mut [T]) -> Result<(), Error> {
        let start_bytes = self.start_bytes(arg, start, size_of_val(out), "read")?;
        self.buffers.read(arg, start_bytes, bytemuck::cast_slice_mut(out))
    }

    /// Replaces the elements of argument `arg` from `start` on.
    ///
    /// # Errors
    /// [`Error::HostArg`] if there is no such argument, it is not written, or there are fewer elements; [`Error::DeviceFailed`].
    pub fn write<T: Pod>(&mut self, arg: usize, start: usize, values: &[T]) -> Result<(), Error> {
        let start_bytes = self.start_bytes(arg, start, size_of_val(values), "written")?;
        self.buffers.write(arg, start_bytes, bytemuck::cast_slice(values))
    }

    fn start_bytes(&self, arg: usize, start: usize, len_bytes: usize, how: &'static str) -> Result<usize, Error> {
        let is_allowed = |access| match how {
            "read" => matches!(access, Access::Read | Access::ReadWrite),
            _ => matches!(access, Access::Write | Access::ReadWrite),
        };
        let known = self.args.get(arg).filter(|arg| is_allowed(arg.access));
        let start_bytes = known.and_then(|arg| {
            let start_bytes = start.checked_mul(arg.dtype.size_bytes())?;
            (start_bytes.checked_add(len_bytes)? <= arg.len_bytes()).then_some(start_bytes)
        });
        start_bytes.ok_or(Error::HostArg { step: self.name, arg, how, start, len_bytes })
    }
}

/// Represents a host step among the kernels: it has arguments, and nothing to dispatch.
#[derive(Debug)]
pub(crate) struct HostKernel {
    pub(crate) name: &'static str,
    pub(crate) args: Vec<Arg>,
}

impl Kernel for HostKernel {
    fn signature(&self) -> Signature {
        Signature::new(self.name, self.args.clone())
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, brisk_kernels::Error> {
        Ok(Vec::new())
    }

    fn twin(&self, _: &mut TwinArgs<'_>) {}
}
