use rayon::prelude::*;

use crate::cpu::team::OnTeam;
use crate::embedding::embedding::{Embedding, EmbeddingGrad};

/// The maximum number of tasks of a gradient; each reads all codes and adds the rows of its own entries.
const MOST_TASKS: usize = 8;
/// Elements of a gradient below which there is one task.
const SERIAL_LEN: usize = 64 * 1024;

pub(crate) fn run(kernel: &Embedding, weight: &[f32], index: &[u32], y: &mut [f32]) {
    let dim = kernel.dim;
    for (y, entry) in y.chunks_exact_mut(dim).zip(kernel.entries(index)) {
        y.copy_from_slice(&weight[entry * dim..][..dim]);
    }
}

pub(crate) fn grad(kernel: &EmbeddingGrad, grad_y: &[f32], index: &[u32], grad_weight: &mut [f32]) {
    let Embedding { n_entries, dim, .. } = kernel.forward;
    let is_small = grad_y.len() + grad_weight.len() < SERIAL_LEN;
    let task_entries = if is_small { n_entries } else { n_entries.div_ceil(MOST_TASKS) };
    let add_rows = |(task, grad_weight): (usize, &mut [f32])| {
        grad_weight.fill(0.0);
        let own = task * task_entries..task * task_entries + grad_weight.len() / dim;
        for (grad_y, entry) in grad_y.chunks_exact(dim).zip(kernel.forward.entries(index)) {
            if own.contains(&entry) && kernel.padding != Some(entry) {
                let sum = &mut grad_weight[(entry - own.start) * dim..][..dim];
                sum.iter_mut().zip(grad_y).for_each(|(sum, grad_y)| *sum += grad_y);
            }
        }
    };
    grad_weight.par_chunks_mut(task_entries * dim).enumerate().for_each_on_team(add_rows);
}
