use super::blocks::each_block;
use crate::philox::LANES;
use crate::{Dropout, Philox};

pub(crate) fn run(kernel: &Dropout, x: &[f32], state: &[u32], y: &mut [f32]) {
    let philox = Philox::new(kernel.seed);
    let (threshold, scale) = kernel.threshold_and_scale();
    each_block(
        y,
        #[inline(always)]
        |at, y| {
            let x = &x[at..at + y.len()];
            for (i, (y, x)) in y.chunks_mut(4 * LANES).zip(x.chunks(4 * LANES)).enumerate() {
                let words = philox.blocks((at / 4 + i * LANES) as u32, kernel.stream, state[1]);
                for (j, (y, x)) in y.iter_mut().zip(x).enumerate() {
                    *y = if words[j % 4][j / 4] >> 8 >= threshold { x * scale } else { 0.0 };
                }
            }
        },
    );
}
