use std::sync::atomic::{AtomicBool, Ordering};

use crate::UpdateScale;
use crate::core::blocks::each_block;

/// The bits that are all 1 in what is not finite.
const EXPONENT: u32 = 0x7F80_0000;

pub(crate) fn unscale(scale: f32, grads: &mut [f32], scaler: &mut [u32], state: &mut [u32]) {
    if state[2] == 2 {
        return;
    }
    let inverse = if scale.is_normal() { (1.0 / f64::from(scale)) as f32 } else { 1.0 };
    let found_inf = AtomicBool::new(!scale.is_normal());
    each_block(
        grads,
        #[inline(always)]
        |_, grads| {
            let mut greatest = 0;
            for g in grads {
                *g *= inverse;
                greatest = greatest.max(g.to_bits() & EXPONENT);
            }
            if greatest == EXPONENT {
                found_inf.store(true, Ordering::Relaxed);
            }
        },
    );
    scaler[0] = scaler[0].max(1);
    if found_inf.into_inner() {
        scaler[0] = 2;
        state[2] = 1;
    }
}

pub(crate) fn update(kernel: &UpdateScale, scale: &mut [f32], scaler: &mut [u32]) {
    let [verdict, n_good, n_skipped_in_a_row, n_skipped] = scaler else { unreachable!("a scaler has four elements") };
    let verdict = std::mem::take(verdict);
    if verdict == 0 {
        return;
    }
    if verdict == 2 {
        scale[0] = product(scale[0], kernel.backoff_factor);
        *n_good = 0;
        *n_skipped_in_a_row = n_skipped_in_a_row.wrapping_add(1);
        *n_skipped = n_skipped.wrapping_add(1);
        return;
    }
    *n_skipped_in_a_row = 0;
    *n_good = n_good.wrapping_add(1);
    if *n_good == kernel.growth_interval {
        let grown = product(scale[0], kernel.growth_factor);
        if grown.is_finite() {
            scale[0] = grown;
        }
        *n_good = 0;
    }
}

/// Rounded twice, as PyTorch's.
fn product(scale: f32, factor: f64) -> f32 {
    (f64::from(scale) * factor) as f32
}
