use crate::core::blocks::each_block;
use crate::{ClipByNorm, ClipByValue};

pub(crate) fn by_norm(kernel: &ClipByNorm, norm: f32, grads: &mut [f32]) {
    let factor = kernel.max_norm / (norm + 1e-6);
    // Not `min`, which would pass NaN over.
    let factor = if factor > 1.0 { 1.0 } else { factor };
    each_block(
        grads,
        #[inline(always)]
        |_, grads| {
            for g in grads {
                *g = if *g == 0.0 { *g } else { *g * factor };
            }
        },
    );
}

pub(crate) fn by_value(kernel: &ClipByValue, grads: &mut [f32]) {
    each_block(
        grads,
        #[inline(always)]
        |_, grads| {
            for g in grads {
                *g = g.clamp(-kernel.limit, kernel.limit);
            }
        },
    );
}
