//! Common code of kernels along the middle one of three dimensions: how series are assigned to invocations.

use crate::error::Error;
use crate::kernel::kernel::Kernel;
use crate::shader::dispatch::{Dispatch, fold_workgroups};
use crate::shader::module::Module;

/// The dispatch over `[n_outer, n, n_inner]`, with a series for each element of the first and the last dimension, of a module
/// that reads `x` and writes `y`. It has one entry point for a series per invocation and one for a series per workgroup.
pub(super) fn series_dispatch(
    kernel: &impl Kernel,
    label: &'static str,
    wgsl: Module,
    [n_outer, n, n_inner]: [usize; 3],
) -> Result<Dispatch, Error> {
    let n_series = n_outer * n_inner;
    // A workgroup per series if series are long and too few for one invocation each.
    let (entry, n_workgroups) = match n > 64 && n_series < 4096 {
        true => ("series_a_workgroup", n_series),
        false => ("series_an_invocation", n_series.div_ceil(64)),
    };
    let dispatch = Dispatch::new(label, wgsl, fold_workgroups(kernel.name(), n_workgroups)?)
        .entry(entry)
        .param("n", n)
        .param("n_inner", n_inner)
        .param("n_series", n_series);
    dispatch.bind(&kernel.args(), ["x"], ["y"])
}
