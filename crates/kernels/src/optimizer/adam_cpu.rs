use rayon::prelude::*;

use super::skip::n_steps;
use crate::core::float::{ln, one_minus_exp_neg};
use crate::core::vectorised::vectorised;
use crate::{Adam, OnTeam, WeightDecay};

/// Parameters per task.
const BLOCK_LEN: usize = 16 * 1024;

pub(crate) fn run(kernel: &Adam, grads: &[f32], lr: &[f32], state: &[u32], params: &mut [f32], m: &mut [f32], v: &mut [f32]) {
    let Some(n_steps) = n_steps(state) else { return };
    let lr = lr[(state[0] as usize).min(lr.len() - 1)];
    let step = Step::new(kernel, lr, n_steps);
    params
        .par_chunks_mut(BLOCK_LEN)
        .zip(m.par_chunks_mut(BLOCK_LEN))
        .zip(v.par_chunks_mut(BLOCK_LEN))
        .zip(grads.par_chunks(BLOCK_LEN))
        .for_each_on_team(|(((params, m), v), grads)| {
            vectorised(
                #[inline(always)]
                || update(kernel, step, grads, params, m, v),
            );
        });
}

/// Values that are the same for all parameters.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    lr: f32,
    corrected_lr: f32,
    inv_root: f32,
}

impl Step {
    pub(crate) fn new(kernel: &Adam, lr: f32, n_steps: u32) -> Self {
        let t = n_steps as f32;
        Self {
            lr,
            corrected_lr: lr / one_minus_exp_neg(-t * ln(kernel.beta1)),
            inv_root: 1.0 / one_minus_exp_neg(-t * ln(kernel.beta2)).sqrt(),
        }
    }

    /// The same step with the learning rate multiplied by a factor.
    #[inline(always)]
    pub(crate) fn times(self, factor: f32) -> Self {
        Self { lr: factor * self.lr, corrected_lr: factor * self.corrected_lr, ..self }
    }
}

#[inline(always)]
pub(crate) fn update(kernel: &Adam, step: Step, grads: &[f32], params: &mut [f32], m: &mut [f32], v: &mut [f32]) {
    let (coupled, decoupled) = match kernel.weight_decay {
        WeightDecay::Gradient(decay) => (decay, 0.0),
        WeightDecay::Decoupled(decay) => (0.0, decay),
    };
    for (((p, m), v), &g) in params.iter_mut().zip(m).zip(v).zip(grads) {
        let g = g + coupled * *p;
        let held = *p - step.lr * decoupled * *p;
        *m += (1.0 - kernel.beta1) * (g - *m);
        *v = kernel.beta2 * *v + (1.0 - kernel.beta2) * g * g;
        *p = held - step.corrected_lr * *m / (v.sqrt() * step.inv_root + kernel.eps);
    }
}
