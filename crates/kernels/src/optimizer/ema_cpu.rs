use super::skip::n_steps;
use crate::Ema;
use crate::core::blocks::each_block;

pub(crate) fn run(kernel: &Ema, params: &[f32], state: &[u32], average: &mut [f32]) {
    let Some(n_steps) = n_steps(state) else { return };
    if !n_steps.is_multiple_of(kernel.every) {
        return;
    }
    let is_first = n_steps == kernel.every;
    each_block(
        average,
        #[inline(always)]
        |at, average| {
            let params = &params[at..at + average.len()];
            if is_first {
                average.copy_from_slice(params);
                return;
            }
            for (average, p) in average.iter_mut().zip(params) {
                *average = kernel.decay * *average + (1.0 - kernel.decay) * p;
            }
        },
    );
}
