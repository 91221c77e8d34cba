use rayon::prelude::*;

use crate::{Embedding, EmbeddingGrad};

/// Tasks of a gradient at most; each looks at all codes and adds the rows of its own entries.
const MOST_TASKS: usize = 8;
/// Elements of a gradient below which there is one task.
const SERIAL_LEN: usize = 64 * 1024;

pub(crate) fn run(kernel: &Embedding, weight: &[f32], index: &[u32], y: &mut [f32]) {
    let dim = kernel.dim;
    for (y, entry) in y.chunks_exact_mut(dim).zip(kernel.entries(index)) {
        y.copy_from_slice(&weight[entry * dim..][..dim]);
    }
}

pub(crate) fn grad(kernel: &EmbeddingGrad, dy: &[f32], index: &[u32], dweight: &mut [f32]) {
    let Embedding { n_entries, dim, .. } = kernel.forward;
    let is_small = dy.len() + dweight.len() < SERIAL_LEN;
    let task_entries = if is_small { n_entries } else { n_entries.div_ceil(MOST_TASKS) };
    let add_rows = |(task, dweight): (usize, &mut [f32])| {
        dweight.fill(0.0);
        let own = task * task_entries..task * task_entries + dweight.len() / dim;
        for (dy, entry) in dy.chunks_exact(dim).zip(kernel.forward.entries(index)) {
            if own.contains(&entry) && kernel.padding != Some(entry) {
                let sum = &mut dweight[(entry - own.start) * dim..][..dim];
                sum.iter_mut().zip(dy).for_each(|(sum, dy)| *sum += dy);
            }
        }
    };
    dweight.par_chunks_mut(task_entries * dim).enumerate().for_each(add_rows);
}
