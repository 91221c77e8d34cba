use super::skip::n_steps;
use crate::cpu::blocks::each_block;
use crate::optimizer::runs::{Runs, ScaleRuns};
use crate::vectorised::inlined;

pub(crate) fn gather(runs: &Runs, x: &[f32], y: &mut [f32]) {
    for (y, &start) in y.chunks_exact_mut(runs.len).zip(&runs.starts) {
        each_block(y, inlined!(|at, y| y.copy_from_slice(&x[start + at..][..y.len()])));
    }
}

pub(crate) fn scale(kernel: &ScaleRuns, norms: &[f32], state: &[u32], x: &mut [f32]) {
    if n_steps(state).is_none() {
        return;
    }
    let ScaleRuns { runs, to, eps } = kernel;
    for (&start, &norm) in runs.starts.iter().zip(norms) {
        // Not `max`, which would ignore NaN.
        let factor = to / if norm < *eps { *eps } else { norm };
        each_block(
            &mut x[start..][..runs.len],
            inlined!(|_, x| {
                for x in x {
                    *x *= factor;
                }
            }),
        );
    }
}
