use super::skip::n_steps;
use crate::core::blocks::each_block;
use crate::{Ema, EmaStart};

pub(crate) fn run(kernel: &Ema, params: &[f32], state: &[u32], average: &mut [f32]) {
    let Some(n_steps) = n_steps(state) else { return };
    let copies = n_steps <= kernel.first_step && kernel.start == EmaStart::Parameters;
    let is_due = n_steps >= kernel.first_step && (n_steps - kernel.first_step).is_multiple_of(kernel.every);
    if !copies && !is_due {
        return;
    }
    each_block(
        average,
        #[inline(always)]
        |at, average| {
            let params = &params[at..at + average.len()];
            if copies {
                average.copy_from_slice(params);
                return;
            }
            for (average, p) in average.iter_mut().zip(params) {
                *average = kernel.decay * *average + (1.0 - kernel.decay) * p;
            }
        },
    );
}
