use rayon::prelude::*;

use crate::core::vectorised::vectorised;
use crate::{AccumulateBatches, OnTeam};

/// Gradients per task.
const BLOCK_LEN: usize = 16 * 1024;

pub(crate) fn run(kernel: &AccumulateBatches, grads: &mut [f32], sum: &mut [f32], state: &mut [u32]) {
    let batch = state[0];
    let at = batch % kernel.every;
    let is_last = at + 1 == kernel.every || batch.wrapping_add(1) == kernel.n_batches;
    if !is_last {
        state[2] = 2;
    }
    let inverse = kernel.inverse();
    grads.par_chunks_mut(BLOCK_LEN).zip(sum.par_chunks_mut(BLOCK_LEN)).for_each_on_team(|(grads, sum)| {
        vectorised(
            #[inline(always)]
            || {
                for (g, sum) in grads.iter_mut().zip(&mut *sum) {
                    let total = if at == 0 { *g } else { *sum + *g };
                    if is_last {
                        *g = total * inverse;
                    } else {
                        *sum = total;
                    }
                }
            },
        );
    });
}
