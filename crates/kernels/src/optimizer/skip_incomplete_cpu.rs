use crate::optimizer::skip_incomplete::SkipIncomplete;

pub(crate) fn run(kernel: &SkipIncomplete, state: &mut [u32]) {
    let count = state[0].wrapping_add(1);
    if !count.is_multiple_of(kernel.every) && count != kernel.n_batches {
        state[2] = 2;
    }
}
