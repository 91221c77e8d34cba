use super::blocks::each_block;
use crate::UpdateScale;

pub(crate) fn unscale(scale: f32, grads: &mut [f32]) {
    let inverse = (1.0 / f64::from(scale)) as f32;
    each_block(
        grads,
        #[inline(always)]
        |_, grads| {
            for g in grads {
                *g *= inverse;
            }
        },
    );
}

pub(crate) fn update(kernel: &UpdateScale, found_inf: f32, scale: &mut [f32], n_good: &mut [u32]) {
    if found_inf > 0.0 {
        scale[0] *= kernel.backoff_factor;
        n_good[0] = 0;
        return;
    }
    n_good[0] = n_good[0].wrapping_add(1);
    if n_good[0] == kernel.growth_interval {
        let grown = scale[0] * kernel.growth_factor;
        if grown.is_finite() {
            scale[0] = grown;
        }
        n_good[0] = 0;
    }
}
