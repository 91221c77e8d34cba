use crate::core::blocks::each_block;
use crate::core::half::Element;
use crate::core::philox::LANES;
use crate::core::sizes::in_u32;
use crate::{Dropout, Philox};

pub(crate) fn run<T: Element>(kernel: &Dropout, x: &[T], state: &[u32], y: &mut [T]) {
    let philox = Philox::new(kernel.seed);
    let (threshold, scale) = kernel.threshold_and_scale();
    each_block(
        y,
        #[inline(always)]
        |at, y| {
            let x = &x[at..at + y.len()];
            for (i, (y, x)) in y.chunks_mut(4 * LANES).zip(x.chunks(4 * LANES)).enumerate() {
                let words = philox.blocks(in_u32(at / 4 + i * LANES), kernel.stream, state[1]);
                for (j, (y, &x)) in y.iter_mut().zip(x).enumerate() {
                    *y = T::narrow(if words[j % 4][j / 4] >> 8 >= threshold { x.widen() * scale } else { 0.0 });
                }
            }
        },
    );
}
