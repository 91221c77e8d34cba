use std::sync::atomic::{AtomicBool, Ordering};

use crate::cpu::blocks::each_block;
use crate::float::rounded;
use crate::optimizer::grad_scaler::UpdateScale;
use crate::vectorised::inlined;

/// The exponent bits of an f32, which are all 1 in infinities and NaNs; as a whole, the bits of infinity.
const EXPONENT: u32 = 0x7F80_0000;
/// The mantissa bits of an f32.
const FRACTION: u32 = 0x007F_FFFF;

pub(crate) fn unscale(scale: f32, grads: &mut [f32], scaler: &mut [u32], state: &mut [u32]) {
    if state[2] == 2 {
        return;
    }
    let inverse = if scale.is_normal() { rounded(1.0 / f64::from(scale)) } else { 1.0 };
    let found_inf = AtomicBool::new(!scale.is_normal());
    each_block(
        grads,
        inlined!(|_, grads| {
            let mut greatest = 0;
            for g in grads {
                *g *= inverse;
                greatest = greatest.max(g.to_bits() & EXPONENT);
            }
            if greatest == EXPONENT {
                found_inf.store(true, Ordering::Relaxed);
            }
        }),
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

/// `scale * factor` as the shader computes it: the mantissas are multiplied in f32, the exponents are added as integers.
fn product(scale: f32, factor: f64) -> f32 {
    let x = scale.to_bits();
    if x == 0 || x >= EXPONENT {
        return scale;
    }
    let (mantissa, exponent) = mantissa_and_exponent(factor);
    let shift = x.leading_zeros().max(8) - 8;
    let x_exponent = ((x >> 23) as i32).max(1) - shift as i32;
    let x_mantissa = f32::from_bits(((x << shift) & FRACTION) | 1.0_f32.to_bits());
    let bits = (x_mantissa * mantissa).to_bits();
    let biased_exponent = x_exponent + exponent + (bits >> 23) as i32 - 127;
    f32::from_bits(match biased_exponent {
        255.. => EXPONENT,
        1..=254 => ((biased_exponent as u32) << 23) | (bits & FRACTION),
        // A subnormal result, rounded to nearest, ties to even.
        _ => {
            let cut = (1 - biased_exponent).min(25) as u32;
            let significand = (bits & FRACTION) | (FRACTION + 1);
            let (kept, rest, tie) = (significand >> cut, significand & ((1 << cut) - 1), 1 << (cut - 1));
            kept + u32::from(rest > tie || (rest == tie && kept & 1 == 1))
        }
    })
}

/// A positive factor as `mantissa * 2^exponent`, with the mantissa from 1 to 2 rounded to f32. A subnormal factor becomes larger,
/// but every product with it is still 0.
pub(crate) fn mantissa_and_exponent(factor: f64) -> (f32, i32) {
    let bits = factor.to_bits();
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | 1.0_f64.to_bits());
    let exponent = i32::try_from(bits >> 52 & 0x7FF).expect("it has 11 bits");
    (rounded(mantissa), exponent - 1023)
}
