use rayon::prelude::*;

use super::adam_cpu;
use super::parameter_groups::GROUP_LEN;
use super::sgd_cpu;
use super::skip::n_steps;
use crate::core::vectorised::vectorised;
use crate::{Adam, OnTeam, Sgd, WeightDecay};

/// Entries of the table per task.
const BLOCK_GROUPS: usize = 256;
const BLOCK_LEN: usize = BLOCK_GROUPS * GROUP_LEN;

pub(crate) fn sgd(
    kernel: &Sgd,
    groups: &[f32],
    grads: &[f32],
    lr: &[f32],
    state: &[u32],
    params: &mut [f32],
    momentum: &mut [f32],
) {
    if n_steps(state).is_none() {
        return;
    }
    let lr = lr[(state[0] as usize).min(lr.len() - 1)];
    let blocks = params.par_chunks_mut(BLOCK_LEN).zip(momentum.par_chunks_mut(BLOCK_LEN)).zip(grads.par_chunks(BLOCK_LEN));
    blocks.zip(groups.par_chunks(2 * BLOCK_GROUPS)).for_each_on_team(|(((params, momentum), grads), groups)| {
        vectorised(
            #[inline(always)]
            || {
                let runs = params.chunks_mut(GROUP_LEN).zip(momentum.chunks_mut(GROUP_LEN)).zip(grads.chunks(GROUP_LEN));
                for (((params, momentum), grads), own) in runs.zip(groups.chunks_exact(2)) {
                    if own[0] >= 0.0 {
                        sgd_cpu::update(&Sgd { weight_decay: own[1], ..*kernel }, own[0] * lr, grads, params, momentum);
                    }
                }
            },
        );
    });
}

#[expect(clippy::too_many_arguments, reason = "they are the kernel's")]
pub(crate) fn adam(
    kernel: &Adam,
    groups: &[f32],
    grads: &[f32],
    lr: &[f32],
    state: &[u32],
    params: &mut [f32],
    m: &mut [f32],
    v: &mut [f32],
) {
    let Some(n_steps) = n_steps(state) else { return };
    let lr = lr[(state[0] as usize).min(lr.len() - 1)];
    let with_decay = |decay| match kernel.weight_decay {
        WeightDecay::Gradient(_) => Adam { weight_decay: WeightDecay::Gradient(decay), ..*kernel },
        WeightDecay::Decoupled(_) => Adam { weight_decay: WeightDecay::Decoupled(decay), ..*kernel },
    };
    let step = adam_cpu::Step::new(kernel, lr, n_steps);
    let blocks = params.par_chunks_mut(BLOCK_LEN).zip(m.par_chunks_mut(BLOCK_LEN)).zip(v.par_chunks_mut(BLOCK_LEN));
    let blocks = blocks.zip(grads.par_chunks(BLOCK_LEN)).zip(groups.par_chunks(2 * BLOCK_GROUPS));
    blocks.for_each_on_team(|((((params, m), v), grads), groups)| {
        vectorised(
            #[inline(always)]
            || {
                let runs = params.chunks_mut(GROUP_LEN).zip(m.chunks_mut(GROUP_LEN)).zip(v.chunks_mut(GROUP_LEN));
                for ((((params, m), v), grads), own) in runs.zip(grads.chunks(GROUP_LEN)).zip(groups.chunks_exact(2)) {
                    if own[0] >= 0.0 {
                        adam_cpu::update(&with_decay(own[1]), step.times(own[0]), grads, params, m, v);
                    }
                }
            },
        );
    });
}
