use rayon::prelude::*;

use super::skip::n_steps;
use crate::core::blocks::each_block;
use crate::core::vectorised::vectorised;
use crate::{Momentum, MuonMomentum, MuonStep, OnTeam};

/// Parameters per task.
const BLOCK_LEN: usize = 16 * 1024;

pub(crate) fn momentum(kernel: &MuonMomentum, grads: &[f32], state: &[u32], momentum: &mut [f32], update: &mut [f32]) {
    let MuonMomentum { runs, momentum: mu, form } = kernel;
    let is_skipped = n_steps(state).is_none();
    for (update, &start) in update.chunks_exact_mut(runs.len).zip(&runs.starts) {
        let (grads, momentum) = (&grads[start..][..runs.len], &mut momentum[start..][..runs.len]);
        let blocks = update.par_chunks_mut(BLOCK_LEN).zip(momentum.par_chunks_mut(BLOCK_LEN)).zip(grads.par_chunks(BLOCK_LEN));
        blocks.for_each_on_team(|((update, momentum), grads)| {
            vectorised(
                #[inline(always)]
                || {
                    for ((update, old), &g) in update.iter_mut().zip(momentum.iter_mut()).zip(grads) {
                        let b = *old + (1.0 - mu) * (g - *old);
                        *old = if is_skipped { *old } else { b };
                        *update = match form {
                            Momentum::Heavy => b,
                            Momentum::Nesterov => g + mu * (b - g),
                            Momentum::FoldedNesterov => unreachable!("refused by `MuonMomentum::check`"),
                        };
                    }
                },
            );
        });
    }
}

pub(crate) fn step(kernel: &MuonStep, update: &[f32], lr: &[f32], state: &[u32], params: &mut [f32]) {
    if n_steps(state).is_none() {
        return;
    }
    let MuonStep { runs, factor, weight_decay, .. } = kernel;
    let lr = lr[(state[0] as usize).min(lr.len() - 1)];
    for (update, &start) in update.chunks_exact(runs.len).zip(&runs.starts) {
        each_block(
            &mut params[start..][..runs.len],
            #[inline(always)]
            |at, params| {
                for (p, u) in params.iter_mut().zip(&update[at..]) {
                    *p = *p - lr * weight_decay * *p - lr * factor * u;
                }
            },
        );
    }
}
