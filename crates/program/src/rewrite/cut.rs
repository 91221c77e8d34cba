//! Kernels over buffers that are longer than one binding, run in parts.

use brisk_kernels::{Access, Arg};

use crate::record::program::{Program, Step, StepArg};

/// Parts start at a multiple of this in each of their buffers, an offset at which every adapter can bind.
const GRAIN_BYTES: usize = 256;

impl Program {
    /// The program with kernels [cut](brisk_kernels::Kernel::with_len) into parts whose arguments are not longer than
    /// `limit_bytes`, as far as possible; `None` if no argument is longer.
    pub(crate) fn cut_to(&self, limit_bytes: usize) -> Option<Self> {
        let is_long = |step: &Step| step.args.iter().any(|arg| arg.bytes.len() > limit_bytes);
        let parts_of = |step: &Step| {
            let parts = if is_long(step) { parts(step, limit_bytes) } else { None };
            parts.unwrap_or_else(|| vec![step.clone()])
        };
        let steps = || self.steps.iter();
        steps().any(is_long).then(|| self.with_steps(steps().flat_map(parts_of).collect()))
    }
}

/// The parts that together replace a step, if its kernel can be cut.
fn parts(step: &Step, limit_bytes: usize) -> Option<Vec<Step>> {
    let (whole, one) = (step.kernel.args(), step.kernel.with_len(1)?.args());
    let is_cut: Vec<bool> = whole.iter().zip(&one).map(|(whole, one)| whole.len != one.len).collect();
    let cut = || whole.iter().zip(&is_cut).filter(|(_, is_cut)| **is_cut).map(|(arg, _)| arg);
    let n = cut().map(|arg| arg.len).max()?;
    let sizes = || cut().map(|arg| arg.dtype.size_bytes());
    let grain = GRAIN_BYTES / sizes().min()?;
    let part_len = limit_bytes / sizes().max()? / grain * grain;
    let starts = (part_len > 0).then(|| (0..n).step_by(part_len))?;
    starts.map(|start| part(step, &is_cut, start, part_len.min(n - start))).collect()
}

/// `len` elements of the step from `start` on.
fn part(step: &Step, is_cut: &[bool], start: usize, len: usize) -> Option<Step> {
    let kernel = step.kernel.with_len(len)?;
    let of_part = |((arg, given), is_cut): ((&Arg, &StepArg), &bool)| {
        // The scratch of each part is the beginning of the scratch of the whole.
        let skipped_bytes = if *is_cut && arg.access != Access::Scratch { start * arg.dtype.size_bytes() } else { 0 };
        let first = given.bytes.start + skipped_bytes;
        let bytes = first..first + arg.len_bytes();
        (bytes.end <= given.bytes.end).then(|| StepArg { bytes, ..given.clone() })
    };
    let args = kernel.args();
    let args = (args.len() == step.args.len()).then(|| args.iter().zip(&step.args).zip(is_cut).map(of_part))?;
    Some(Step { args: args.collect::<Option<_>>()?, kernel: kernel.into(), host: None })
}
