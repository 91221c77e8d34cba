use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brisk_kernels::{Access, Arg, Cost, DType, Kernel};

use crate::error::Error;
use crate::record::host_step::{HostKernel, HostStep};
use crate::record::persistent::Persistent;

/// A list of kernels over buffers: recorded once, compiled for a device, replayed many times.
///
/// Kernels run in the order in which they were recorded; each sees the values written by those before it. Recording runs and
/// allocates nothing, and needs no device.
///
/// # Examples
/// ```
/// use brisk_program::{Device, Persistent, Program, kernels::{DType, Map}};
///
/// let [a, b, y] = ["a", "b", "y"].map(|name| Persistent::new(name, DType::F32, 2));
/// let mut program = Program::new("sum");
/// let (a_slice, b_slice, y_slice) = (program.persistent(&a), program.persistent(&b), program.persistent(&y));
/// let twice = program.transient("a + b", DType::F32, 2);
/// program.push(Map::binary(2, |a, b| a + b), &[a_slice, b_slice, twice])?;
/// program.push(Map::binary(2, |a, b| a + b), &[twice, b_slice, y_slice])?;
///
/// let device = Device::cpu()?;
/// let executable = device.compile(&program)?;
/// device.write(&a, &[1.0_f32, 2.0])?;
/// device.write(&b, &[10.0_f32, 20.0])?;
/// executable.run(1)?;
/// assert_eq!(device.read::<f32>(&y)?, [21.0, 42.0]);
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug)]
pub struct Program {
    id: u64,
    name: String,
    pub(crate) buffers: Vec<Buffer>,
    pub(crate) steps: Vec<Step>,
}

/// A range of elements of one of a program's buffers, the argument of a kernel. It is `Copy`, and contains only a few numbers.
///
/// # Examples
/// ```
/// use brisk_program::{Program, kernels::DType};
///
/// let mut program = Program::new("step");
/// let grads = program.transient("grads", DType::F32, 256 + 16);
/// let (weights, bias) = (grads.slice(0..256), grads.slice(256..272));
/// assert_eq!((weights.len(), bias.len(), bias.dtype()), (256, 16, DType::F32));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    program: u64,
    pub(crate) buffer: usize,
    dtype: DType,
    start: usize,
    len: usize,
}

#[derive(Debug, Clone)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) len: usize,
    pub(crate) persistent: Option<Persistent>,
    /// The bytes that each recorded kernel writes, scratch not counted.
    writes: Vec<Range<usize>>,
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) kernel: Arc<dyn Kernel>,
    pub(crate) args: Vec<StepArg>,
    /// The host step, if this is not a kernel.
    pub(crate) host: Option<Arc<dyn HostStep>>,
}

#[derive(Debug, Clone)]
pub(crate) struct StepArg {
    /// Its name in the kernel's argument list.
    pub(crate) name: &'static str,
    pub(crate) buffer: usize,
    pub(crate) bytes: Range<usize>,
    pub(crate) access: Access,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Program {
    /// An empty program. The name is for errors and profiles.
    pub fn new(name: impl Into<String>) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { id, name: name.into(), buffers: Vec::new(), steps: Vec::new() }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The number of recorded kernels, including host steps.
    pub fn n_kernels(&self) -> usize {
        self.steps.len()
    }

    /// The names of the kernels, in order.
    pub fn kernel_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.steps.iter().map(|step| step.kernel.name())
    }

    /// The recorded kernels, one per line: name, sizes and constants as the kernel's `Debug` form has them, and arguments. It is
    /// equal for programs that compute the same in the same way, and depends neither on a device nor on the names of buffers.
    ///
    /// # Examples
    /// ```
    /// use brisk_program::{Program, kernels::{DType, Map}};
    ///
    /// let scaled = |factor: f32| {
    ///     let mut program = Program::new("scaled");
    ///     let [x, y] = ["x", "y"].map(|name| program.transient(name, DType::F32, 4));
    ///     program.push(Map::unary(4, move |x| x * factor), &[x, y]).map(|()| program.listing())
    /// };
    /// assert_eq!(scaled(2.0)?, scaled(2.0)?);
    /// assert_ne!(scaled(2.0)?, scaled(3.0)?);
    /// # Ok::<(), brisk_program::Error>(())
    /// ```
    pub fn listing(&self) -> String {
        let mut listing = String::new();
        for Step { kernel, args, .. } in &self.steps {
            listing.push_str(&format!("{} {kernel:?}", kernel.name()));
            for StepArg { name, buffer, bytes, access } in args {
                let Buffer { dtype, len, .. } = self.buffers[*buffer];
                listing.push_str(&format!(" {name}={access:?} {buffer}:{dtype}[{len}] {bytes:?}"));
            }
            listing.push('\n');
        }
        listing
    }

    /// The position of a buffer among those of the program, as [`listing`](Self::listing) has it.
    pub fn position_of(&self, persistent: &Persistent) -> Option<usize> {
        self.buffers.iter().position(|buffer| buffer.persistent.as_ref().is_some_and(|known| known.id() == persistent.id()))
    }

    /// The work of one replay.
    pub fn cost(&self) -> Cost {
        self.cost_since(0)
    }

    /// The work of one replay of the kernels after the first `n_kernels`.
    pub fn cost_since(&self, n_kernels: usize) -> Cost {
        let sum = |a: Cost, b: Cost| Cost { flops: a.flops + b.flops, bytes: a.bytes + b.bytes };
        self.steps.iter().skip(n_kernels).map(|step| step.kernel.cost()).fold(Cost::default(), sum)
    }

    /// The number of kernels so far that write to elements of `slice`: as long as it is the same, so are the values.
    pub fn n_writes(&self, slice: Slice) -> usize {
        let bytes = slice.bytes();
        self.buffers[slice.buffer].writes.iter().filter(|written| overlap(written, &bytes)).count()
    }

    /// Binds a buffer that outlives the run; binding it again returns the same slice.
    pub fn persistent(&mut self, persistent: &Persistent) -> Slice {
        let buffer = self.position_of(persistent).unwrap_or_else(|| {
            self.buffers.push(Buffer {
                name: persistent.name().to_owned(),
                dtype: persistent.dtype(),
                len: persistent.len(),
                persistent: Some(persistent.clone()),
                writes: Vec::new(),
            });
            self.buffers.len() - 1
        });
        self.whole(buffer)
    }

    /// A buffer that lives within one run, from the kernel that first writes it to the last that reads it.
    ///
    /// The planner lets transients that are never alive together share memory, so before its first write one has any contents.
    pub fn transient(&mut self, name: impl Into<String>, dtype: DType, len: usize) -> Slice {
        self.buffers.push(Buffer { name: name.into(), dtype, len, persistent: None, writes: Vec::new() });
        self.whole(self.buffers.len() - 1)
    }

    /// Records a kernel. `args` are in the order of its argument list; scratch is added here.
    ///
    /// # Errors
    /// [`Error::Kernel`] with the error of the kernel's own check; [`Error::ArgCount`], [`Error::Arg`], [`Error::Alias`],
    /// [`Error::ForeignSlice`]; [`Error::EmptyArg`], [`Error::ScratchOrder`]. On `Err` nothing has been recorded.
    pub fn push(&mut self, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        let step = self.step(Arc::new(kernel), None, args)?;
        self.insert(self.n_kernels(), step);
        Ok(())
    }

    /// Records a host step. `args` are in the order of its argument list.
    ///
    /// # Errors
    /// As [`push`](Self::push); [`Error::HostScratch`].
    pub fn push_host(&mut self, host: Arc<dyn HostStep>, args: &[Slice]) -> Result<(), Error> {
        self.insert_host(self.n_kernels(), host, args)
    }

    /// Records a host step before kernel `at`, such as right after the [`last_write`](Self::last_write) of its input, so that it
    /// need not wait for later kernels.
    ///
    /// # Errors
    /// As [`push_host`](Self::push_host).
    ///
    /// # Panics
    /// If there are fewer kernels than `at`.
    #[track_caller]
    pub fn insert_host(&mut self, at: usize, host: Arc<dyn HostStep>, args: &[Slice]) -> Result<(), Error> {
        assert!(at <= self.n_kernels(), "host step before kernel {at} of {}", self.n_kernels());
        let kernel = HostKernel { name: host.name(), args: host.args() };
        if let Some(Arg { name: arg, .. }) = kernel.args.iter().find(|arg| arg.access == Access::Scratch) {
            return Err(Error::HostScratch { program: self.name.clone(), step: host.name(), arg });
        }
        let step = self.step(Arc::new(kernel), Some(host), args)?;
        self.insert(at, step);
        Ok(())
    }

    fn insert(&mut self, at: usize, step: Step) {
        for arg in step.args.iter().filter(|arg| arg.is_write()) {
            self.buffers[arg.buffer].writes.push(arg.bytes.clone());
        }
        self.steps.insert(at, step);
    }

    /// The host steps, in order.
    pub fn host_steps(&self) -> impl Iterator<Item = &Arc<dyn HostStep>> {
        self.steps.iter().filter_map(|step| step.host.as_ref())
    }

    /// The last kernel that writes to elements of `slice`, scratch not counted; `None` if none does.
    pub fn last_write(&self, slice: Slice) -> Option<usize> {
        self.steps.iter().rposition(|step| step.writes(slice))
    }

    fn step(&mut self, kernel: Arc<dyn Kernel>, host: Option<Arc<dyn HostStep>>, slices: &[Slice]) -> Result<Step, Error> {
        kernel.check()?;
        let mut args = kernel.args();
        self.check_args(kernel.name(), &args)?;
        let n_given = args.iter().filter(|arg| arg.access != Access::Scratch).count();
        let scratch = args.split_off(n_given);
        if slices.len() != n_given {
            let names = args.iter().map(|arg| arg.name).collect::<Vec<_>>().join(", ");
            let program = self.name.clone();
            return Err(Error::ArgCount { program, kernel: kernel.name(), expected: n_given, names, found: slices.len() });
        }
        let mut step = Step { kernel, args: Vec::with_capacity(n_given + scratch.len()), host };
        for (arg, slice) in args.iter().zip(slices) {
            self.check_arg(&step, arg, slice)?;
            step.args.push(step_arg(arg, slice));
        }
        for arg in scratch {
            let slice = self.transient(arg.name, arg.dtype, arg.len);
            step.args.push(step_arg(&arg, &slice));
        }
        Ok(step)
    }

    /// Checks the kernel's own argument list.
    fn check_args(&self, kernel: &'static str, args: &[Arg]) -> Result<(), Error> {
        args.iter().try_for_each(|arg| arg.check(kernel))?;
        let program = || self.name.clone();
        if let Some(Arg { name: arg, .. }) = args.iter().find(|arg| arg.len == 0) {
            return Err(Error::EmptyArg { program: program(), kernel, arg });
        }
        let mut behind_scratch = args.iter().skip_while(|arg| arg.access != Access::Scratch);
        match behind_scratch.find(|arg| arg.access != Access::Scratch) {
            Some(Arg { name: arg, .. }) => Err(Error::ScratchOrder { program: program(), kernel, arg }),
            None => Ok(()),
        }
    }

    fn check_arg(&self, step: &Step, arg: &Arg, slice: &Slice) -> Result<(), Error> {
        let (program, kernel) = (self.name.clone(), step.kernel.name());
        if slice.program != self.id {
            return Err(Error::ForeignSlice { program, kernel, arg: arg.name });
        }
        let buffer = self.buffers[slice.buffer].name.clone();
        if slice.len != arg.len || slice.dtype != arg.dtype {
            return Err(Error::Arg {
                program,
                kernel,
                arg: arg.name,
                expected_len: arg.len,
                expected_dtype: arg.dtype,
                buffer,
                found_len: slice.len,
                found_dtype: slice.dtype,
            });
        }
        let twice = |other: &StepArg| other.buffer == slice.buffer && (other.access.writes() || arg.access.writes());
        if step.args.iter().any(twice) {
            return Err(Error::Alias { program, kernel, buffer, arg: arg.name });
        }
        Ok(())
    }

    fn whole(&self, buffer: usize) -> Slice {
        let Buffer { dtype, len, .. } = self.buffers[buffer];
        Slice { program: self.id, buffer, dtype, start: 0, len }
    }

    /// A copy of the program.
    pub(crate) fn copy(&self) -> Self {
        self.with_steps(self.steps.clone())
    }

    /// A program of `steps` over the same buffers.
    pub(crate) fn with_steps(&self, steps: Vec<Step>) -> Self {
        Self { buffers: self.buffers.clone(), steps, ..Self::new(self.name.clone()) }
    }

    /// Replaces the buffer `old` by `new` in the kernels from `at` on.
    pub(crate) fn replace_buffer(&mut self, at: usize, old: usize, new: usize) {
        let args = self.steps.iter_mut().skip(at).flat_map(|step| &mut step.args);
        args.filter(|arg| arg.buffer == old).for_each(|arg| arg.buffer = new);
    }

    /// Adds a transient with the dtype and length of `buffer`.
    pub(crate) fn copy_of(&mut self, buffer: usize) -> usize {
        let Buffer { name, dtype, len, .. } = &self.buffers[buffer];
        let (name, dtype, len) = (name.clone(), *dtype, *len);
        self.transient(name, dtype, len).buffer
    }

    pub(crate) fn persistents(&self) -> impl Iterator<Item = &Persistent> {
        self.buffers.iter().filter_map(|buffer| buffer.persistent.as_ref())
    }
}

impl Slice {
    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The elements of `range` of this slice. On a GPU a slice that a kernel is given must start at a multiple of 256 bytes (or
    /// of the adapter's own alignment, if that is less), else compiling returns [`Error::SliceOffset`].
    ///
    /// # Panics
    /// If the range reaches beyond the slice.
    #[track_caller]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of a slice of {} elements", self.len);
        Self { start: self.start + range.start, len: range.len(), ..*self }
    }

    /// Whether both have elements in common.
    pub fn overlaps(&self, other: Self) -> bool {
        (self.program, self.buffer) == (other.program, other.buffer) && overlap(&self.bytes(), &other.bytes())
    }

    /// The same range of another buffer.
    pub(crate) fn of_buffer(&self, buffer: usize) -> Self {
        Self { buffer, ..*self }
    }

    pub(crate) fn bytes(&self) -> Range<usize> {
        let size = self.dtype.size_bytes();
        self.start.saturating_mul(size)..(self.start + self.len).saturating_mul(size)
    }
}

impl Step {
    /// Whether it writes to elements of `slice`, scratch not counted.
    fn writes(&self, slice: Slice) -> bool {
        self.args.iter().any(|arg| arg.is_write() && arg.overlaps(slice))
    }

    /// Whether a buffer is among its arguments.
    pub(crate) fn names(&self, buffer: usize) -> bool {
        self.args.iter().any(|arg| arg.buffer == buffer)
    }
}

impl StepArg {
    /// Whether it has elements of `slice`.
    pub(crate) fn overlaps(&self, slice: Slice) -> bool {
        self.buffer == slice.buffer && overlap(&self.bytes, &slice.bytes())
    }

    /// Whether a kernel writes to it, and more than scratch.
    fn is_write(&self) -> bool {
        self.access.writes() && self.access != Access::Scratch
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

impl Buffer {
    pub(crate) fn len_bytes(&self) -> usize {
        self.len.saturating_mul(self.dtype.size_bytes())
    }
}

fn step_arg(arg: &Arg, slice: &Slice) -> StepArg {
    StepArg { name: arg.name, buffer: slice.buffer, bytes: slice.bytes(), access: arg.access }
}
