use rayon::prelude::*;

use super::skip::n_steps;
use crate::core::vectorised::vectorised;
use crate::{Momentum, OnTeam, Sgd};

/// Parameters per task.
const BLOCK_LEN: usize = 16 * 1024;

pub(crate) fn run(kernel: &Sgd, grads: &[f32], lr: &[f32], state: &[u32], params: &mut [f32], momentum: &mut [f32]) {
    if n_steps(state).is_none() {
        return;
    }
    let lr = lr[(state[0] as usize).min(lr.len() - 1)];
    params.par_chunks_mut(BLOCK_LEN).zip(momentum.par_chunks_mut(BLOCK_LEN)).zip(grads.par_chunks(BLOCK_LEN)).for_each_on_team(
        |((params, momentum), grads)| {
            vectorised(
                #[inline(always)]
                || update(kernel, lr, grads, params, momentum),
            );
        },
    );
}

#[inline(always)]
pub(crate) fn update(kernel: &Sgd, lr: f32, grads: &[f32], params: &mut [f32], momentum: &mut [f32]) {
    for ((p, u), &g) in params.iter_mut().zip(momentum).zip(grads) {
        let g = g + kernel.weight_decay * *p;
        if kernel.form == Momentum::FoldedNesterov {
            let step = -lr * g;
            *u = kernel.momentum * *u + step;
            *p += step + kernel.momentum * *u;
            continue;
        }
        *u = kernel.momentum * *u + g;
        *p -= lr * if kernel.form == Momentum::Nesterov { g + kernel.momentum * *u } else { *u };
    }
}
