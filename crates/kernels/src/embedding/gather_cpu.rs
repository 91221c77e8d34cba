use crate::embedding::gather::{Gather, GatherIndex};

/// The element of `x` for element `i` of `y`.
fn source(kernel: &Gather, index: &[u32], i: usize) -> usize {
    let Gather { n_x, n, n_inner, .. } = *kernel;
    let at = match kernel.index {
        GatherIndex::Each => index[i],
        GatherIndex::Shared => index[i / n_inner % n],
    } as usize;
    let at = if at < n_x { at } else { 0 };
    (i / (n * n_inner) * n_x + at) * n_inner + i % n_inner
}

pub(crate) fn run(kernel: &Gather, x: &[f32], index: &[u32], y: &mut [f32]) {
    for (i, y) in y.iter_mut().enumerate() {
        *y = x[source(kernel, index, i)];
    }
}

pub(crate) fn grad(kernel: &Gather, grad_y: &[f32], index: &[u32], grad_x: &mut [f32]) {
    grad_x.fill(0.0);
    for (i, grad_y) in grad_y.iter().enumerate() {
        grad_x[source(kernel, index, i)] += grad_y;
    }
}
