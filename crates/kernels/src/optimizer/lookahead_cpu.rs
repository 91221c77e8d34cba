use super::skip::n_steps;
use crate::{Lookahead, LookaheadPhase};

pub(crate) fn run(kernel: &Lookahead, decays: &[f32], state: &[u32], values: &mut [f32], slow: &mut [f32]) {
    if kernel.phase == LookaheadPhase::Start {
        if state[1] == state[3] {
            slow.copy_from_slice(values);
        }
        return;
    }
    if let Some(n_steps) = n_steps(state).filter(|n_steps| n_steps.is_multiple_of(kernel.every)) {
        let d = decays[((n_steps / kernel.every - 1) as usize).min(decays.len() - 1)];
        for (value, slow) in values.iter_mut().zip(&mut *slow) {
            *slow = d * *slow + (1.0 - d) * *value;
            *value = *slow;
        }
    }
    if Some(state[1].wrapping_add(1)) == kernel.end {
        values.copy_from_slice(slow);
    }
}
