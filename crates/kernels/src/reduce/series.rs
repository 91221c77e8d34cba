//! Common code of kernels along the middle one of three dimensions: how series are assigned to invocations.

use crate::error::Error;
use crate::kernel::kernel::Kernel;
use crate::shader::dispatch::{Dispatch, fold_workgroups};
use crate::shader::module::Module;

/// Many series: one for each element of the first and the last of three dimensions.
pub(super) struct Series {
    pub(super) n_outer: usize,
    pub(super) n: usize,
    pub(super) n_inner: usize,
}

impl Series {
    /// The dispatch of a module that reads `x` and writes `y`, with one entry point for a series per invocation and one for a
    /// series per workgroup.
    pub(super) fn dispatch(
        &self,
        kernel: &impl Kernel,
        label: &'static str,
        wgsl: Module,
        constants: impl IntoIterator<Item = (&'static str, f64)>,
    ) -> Result<Vec<Dispatch>, Error> {
        let n_series = self.n_outer * self.n_inner;
        // A workgroup per series if series are long and too few for one invocation each.
        let (entry, n_workgroups) = match self.n > 64 && n_series < 4096 {
            true => ("series_a_workgroup", n_series),
            false => ("series_an_invocation", n_series.div_ceil(64)),
        };
        let dispatch = Dispatch::new(label, wgsl, fold_workgroups(kernel.name(), n_workgroups)?)
            .entry(entry)
            .constants(constants)
            .param("n", self.n)
            .param("n_inner", self.n_inner)
            .param("n_series", n_series);
        Ok(vec![dispatch.bind(&kernel.args(), ["x"], ["y"])?])
    }
}
