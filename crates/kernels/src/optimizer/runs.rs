use super::runs_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::interval::{Interval, check_settings};
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::run_state::STATE_LEN;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::{Module, module};
use crate::sizes::check_size;

/// Ranges of equal length in a flat buffer: the matrices of one shape among a model's parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// Elements of the flat buffer.
    pub n: usize,
    /// Where each range starts.
    pub starts: Vec<usize>,
    /// Elements of each range.
    pub len: usize,
}

impl Runs {
    /// `n_runs` ranges of `len` elements, one after the other.
    pub fn concatenated(n_runs: usize, len: usize) -> Self {
        Self { n: n_runs * len, starts: (0..n_runs).map(|run| run * len).collect(), len }
    }

    /// Elements of all ranges.
    pub fn n_elements(&self) -> usize {
        self.starts.len().saturating_mul(self.len)
    }

    /// Whether all ranges are within the buffer, in order and without overlap.
    pub(crate) fn check(&self, kernel: &impl Kernel) -> Result<(), Error> {
        let mut free = 0;
        for &found in &self.starts {
            let is_valid = found >= free && found.saturating_add(self.len) <= self.n;
            let expected = "ascending starts of ranges that do not overlap and end within the buffer";
            check_size(kernel.name(), ("start of a run", found), is_valid, expected)?;
            free = found + self.len;
        }
        check_sizes(kernel, &[("n", self.n), ("number of runs", self.starts.len()), ("length of a run", self.len)])
    }

    /// A dispatch of `element` for each range, with the parameters `start`, its offset in the flat buffer, `run`, its index, and
    /// `len`; then those that `finish` adds.
    pub(crate) fn dispatches(
        &self,
        kernel: &'static str,
        label: &'static str,
        module: &Module,
        finish: impl Fn(Dispatch) -> Result<Dispatch, Error>,
    ) -> Result<Vec<Dispatch>, Error> {
        let of_run = |(run, &start): (usize, &usize)| {
            let dispatch = Dispatch::elementwise(kernel, label, module.clone(), self.len)?;
            finish(dispatch.param("start", start).param("run", run).param("len", self.len))
        };
        self.starts.iter().enumerate().map(of_run).collect()
    }
}

/// Ranges of a flat buffer, copied and concatenated: `y[i, ..] = x[starts[i] ..][.. len]`.
///
/// # Shapes
/// `x`: `[n]`; `y`: `[n_runs, len]`.
/// # Dtypes
/// f32.
/// # Errors
/// [`Error::Size`] if ranges overlap or reach beyond the buffer.
/// # Cost
/// One dispatch per range, so that their number is not limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatherRuns {
    /// The ranges.
    pub runs: Runs,
}

impl Kernel for GatherRuns {
    fn signature(&self) -> Signature {
        let args = [Arg::read("x", DType::F32, self.runs.n), Arg::write("y", DType::F32, self.runs.n_elements())];
        Signature::new("gather_runs", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.runs.check(self)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let args = self.args();
        self.runs.dispatches(self.name(), "kernels.gather_runs", &module!("runs_gather.wgsl"), |dispatch| {
            dispatch.bind(&args, ["x"], ["y"])
        })
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        runs_cpu::gather(&self.runs, args.read("x"), args.write("y"));
    }

    fn cost(&self) -> Cost {
        Cost { flops: 0, bytes: 8 * self.runs.n_elements() as u64 }
    }
}

/// Scales ranges of a flat buffer to a given norm, given their present norms:
/// `x[starts[i] ..][.. len] *= to / max(norms[i], eps)`. While `state.skip` is not 0, nothing changes.
///
/// # Shapes
/// `norms`: `[n_runs]`; `state`: [`STATE_LEN`]; `x`: `[n]`.
/// # Dtypes
/// f32; `state` u32.
/// # Errors
/// As [`GatherRuns`]; [`Error::Unsupported`] for a norm or an ε that is not a positive number.
/// # Cost
/// One dispatch per range, so that their number is not limited. It is not a [`Map`](crate::Map): ranges may start anywhere in the
/// buffer, and elements between them do not change.
#[derive(Debug, Clone, PartialEq)]
pub struct ScaleRuns {
    /// The ranges.
    pub runs: Runs,
    /// The norm that they are scaled to.
    pub to: f32,
    /// The minimum norm to divide by.
    pub eps: f32,
}

impl Kernel for ScaleRuns {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("norms", DType::F32, self.runs.starts.len()),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("x", DType::F32, self.runs.n),
        ];
        Signature::new("scale_runs", args)
    }

    fn check(&self) -> Result<(), Error> {
        check_settings(self, &[("to", self.to, Interval::Positive), ("eps", self.eps, Interval::Positive)])?;
        self.runs.check(self)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let args = self.args();
        self.runs.dispatches(self.name(), "kernels.scale_runs", &module!("runs_scale.wgsl"), |dispatch| {
            dispatch.param("to", self.to).param("eps", self.eps).bind(&args, ["norms", "state"], ["x"])
        })
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        runs_cpu::scale(self, args.read("norms"), args.read("state"), args.write("x"));
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.runs.n_elements() as u64, bytes: 8 * self.runs.n_elements() as u64 }
    }
}
