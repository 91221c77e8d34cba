use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brisk_kernels::{Access, DType, Kernel};

use crate::{Error, Persistent, Plan};

/// A list of kernels over buffers: recorded once, compiled for a device, replayed many times.
#[derive(Debug)]
pub struct Program {
    id: u64,
    name: String,
    buffers: Vec<Buffer>,
    steps: Vec<Step>,
}

/// A run of elements of one of a program's buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    program: u64,
    buffer: usize,
    dtype: DType,
    start: usize,
    len: usize,
}

#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) len: usize,
    pub(crate) persistent: Option<Persistent>,
}

#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) kernel: Arc<dyn Kernel>,
    pub(crate) args: Vec<StepArg>,
}

#[derive(Debug, Clone)]
pub(crate) struct StepArg {
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

    /// How many kernels have been recorded.
    pub fn n_kernels(&self) -> usize {
        self.steps.len()
    }

    /// The names of the kernels, in order.
    pub fn kernel_names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.steps.iter().map(|step| step.kernel.name())
    }

    /// The work of one replay.
    pub fn cost(&self) -> brisk_kernels::Cost {
        self.steps.iter().map(|step| step.kernel.cost()).fold(brisk_kernels::Cost::default(), |sum, cost| brisk_kernels::Cost {
            flops: sum.flops + cost.flops,
            bytes: sum.bytes + cost.bytes,
        })
    }

    /// Binds a buffer that outlives the run; binding it again gives the same slice.
    pub fn persistent(&mut self, persistent: &Persistent) -> Slice {
        let known = self.buffers.iter().position(|b| b.persistent.as_ref().is_some_and(|p| p.id() == persistent.id()));
        let buffer = known.unwrap_or_else(|| {
            self.buffers.push(Buffer {
                name: persistent.name().to_owned(),
                dtype: persistent.dtype(),
                len: persistent.len(),
                persistent: Some(persistent.clone()),
            });
            self.buffers.len() - 1
        });
        self.whole(buffer)
    }

    /// A buffer that lives within one run, from the kernel that first writes it to the last that reads it.
    ///
    /// The planner lets transients that are never alive together share memory.
    pub fn transient(&mut self, name: impl Into<String>, dtype: DType, len: usize) -> Slice {
        self.buffers.push(Buffer { name: name.into(), dtype, len, persistent: None });
        self.whole(self.buffers.len() - 1)
    }

    /// Records a kernel. `args` are in the order of its argument list; scratch is added here.
    ///
    /// # Errors
    /// What the kernel's own check says; [`Error::ArgCount`], [`Error::Arg`], [`Error::Alias`], [`Error::ForeignSlice`],
    /// [`Error::EmptyBuffer`]. On `Err` nothing has been recorded.
    pub fn push(&mut self, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        self.push_impl(Arc::new(kernel), args)
    }

    fn push_impl(&mut self, kernel: Arc<dyn Kernel>, slices: &[Slice]) -> Result<(), Error> {
        kernel.check()?;
        let mut args = kernel.args();
        let n_given = args.iter().filter(|arg| arg.access != Access::Scratch).count();
        let scratch = args.split_off(n_given);
        if slices.len() != n_given {
            let names = args.iter().map(|arg| arg.name).collect::<Vec<_>>().join(", ");
            let program = self.name.clone();
            return Err(Error::ArgCount { program, kernel: kernel.name(), expected: n_given, names, found: slices.len() });
        }
        let mut step = Step { kernel, args: Vec::with_capacity(n_given + scratch.len()) };
        for (arg, slice) in args.iter().zip(slices) {
            self.check_arg(&step, arg, slice)?;
            step.args.push(StepArg { buffer: slice.buffer, bytes: slice.bytes(), access: arg.access });
        }
        for arg in scratch {
            let slice = self.transient(arg.name, arg.dtype, arg.len);
            step.args.push(StepArg { buffer: slice.buffer, bytes: slice.bytes(), access: arg.access });
        }
        self.steps.push(step);
        Ok(())
    }

    fn check_arg(&self, step: &Step, arg: &brisk_kernels::Arg, slice: &Slice) -> Result<(), Error> {
        let (program, kernel) = (self.name.clone(), step.kernel.name());
        if slice.program != self.id {
            return Err(Error::ForeignSlice { program, kernel, arg: arg.name });
        }
        let buffer = self.buffers[slice.buffer].name.clone();
        if slice.len == 0 {
            return Err(Error::EmptyBuffer { buffer });
        }
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

    /// Lays out the transients and sums up the memory, without a device.
    ///
    /// # Errors
    /// [`Error::ReadBeforeWrite`] if a transient is read before it is written.
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::new(self)
    }

    fn whole(&self, buffer: usize) -> Slice {
        let Buffer { dtype, len, .. } = self.buffers[buffer];
        Slice { program: self.id, buffer, dtype, start: 0, len }
    }

    pub(crate) fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn persistents(&self) -> impl Iterator<Item = &Persistent> {
        self.buffers.iter().filter_map(|buffer| buffer.persistent.as_ref())
    }
}

impl Slice {
    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The elements of `range` of this slice. On a GPU a slice must start at a multiple of 256 bytes.
    ///
    /// # Panics
    /// If the range reaches beyond the slice.
    #[track_caller]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of a slice of {} elements", self.len);
        Self { start: self.start + range.start, len: range.len(), ..*self }
    }

    fn bytes(&self) -> Range<usize> {
        let size = self.dtype.size_bytes();
        self.start * size..(self.start + self.len) * size
    }
}

impl Buffer {
    pub(crate) fn len_bytes(&self) -> usize {
        self.len * self.dtype.size_bytes()
    }
}
