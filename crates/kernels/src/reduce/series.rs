//! What kernels along the middle of three dimensions share: how the series are given to invocations.

use crate::{Dispatch, Error, Module, fold_workgroups};

/// Many series: one for each element of the first and the last of three dimensions.
pub(super) struct Series {
    pub(super) n_outer: usize,
    pub(super) n: usize,
    pub(super) n_inner: usize,
}

impl Series {
    /// The dispatch of a module with an entry point for a series per invocation and one for a series per workgroup, which reads argument 0 and writes argument 1.
    pub(super) fn dispatch(
        &self,
        kernel: &'static str,
        label: &'static str,
        wgsl: Module,
        constants: Vec<(&'static str, f64)>,
    ) -> Result<Vec<Dispatch>, Error> {
        let n_series = self.n_outer * self.n_inner;
        // A workgroup if a series is long, and there are too few for an invocation each.
        let (entry, n_workgroups) = match self.n > 64 && n_series < 4096 {
            true => ("series_a_workgroup", n_series),
            false => ("series_an_invocation", n_series.div_ceil(64)),
        };
        Ok(vec![Dispatch {
            label,
            wgsl,
            entry,
            constants,
            params: bytemuck::cast_slice(&[self.n as u32, self.n_inner as u32, n_series as u32, 0]).to_vec(),
            reads: vec![0],
            writes: vec![1],
            workgroups: fold_workgroups(kernel, n_workgroups)?,
        }])
    }
}
