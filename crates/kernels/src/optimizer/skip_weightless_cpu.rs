use crate::optimizer::skip_weightless::SkipWeightless;

pub(crate) fn run(kernel: &SkipWeightless, weight: f32, sum: &mut [f32], state: &mut [u32]) {
    let batch = state[0];
    let at = batch % kernel.every;
    let is_last = at + 1 == kernel.every || batch.wrapping_add(1) == kernel.n_batches;
    let total = if at == 0 { weight } else { sum[0] + weight };
    sum[0] = total;
    if is_last && total == 0.0 {
        state[2] = 2;
    }
}
