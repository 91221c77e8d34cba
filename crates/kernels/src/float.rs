//! Elementary functions of f32 without calls or branches, so that loops over them vectorise.

/// 1.5 · 2²³: adding it to a small number leaves the nearest integer in the low bits of the sum.
const SHIFT: f32 = 12_582_912.0;

/// `exp(x)` within 2 ulp; 0 below -87.3, +inf above 88.7.
///
/// Range reduction to `|r| ≤ ln 2 / 2` in two steps (Cody & Waite), a polynomial of degree 6, and the exponent added as bits.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let clamped = x.clamp(-87.33654, 88.72283);
    // The low bits of the sum are the nearest integer.
    let shifted = clamped * std::f32::consts::LOG2_E + SHIFT;
    let n = shifted - SHIFT;
    let r = clamped - n * 0.693_359_4;
    let r = r - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_2e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let p = p * r * r + r + 1.0;
    // Two factors, since 2^128 is not an f32.
    let exponent = (shifted.to_bits() as i32).wrapping_sub(SHIFT.to_bits() as i32);
    let half = exponent >> 1;
    let rest = exponent.wrapping_sub(half);
    let y = p * power_of_two(half) * power_of_two(rest);
    // NaN is passed through; `clamp` keeps it.
    if x < -87.33654 {
        0.0
    } else if x > 88.72283 {
        f32::INFINITY
    } else {
        y
    }
}

#[inline(always)]
fn power_of_two(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `1 - exp(-x)` for `x ≥ 0`, accurate even if `x` is small: used for the bias corrections of Adam. Does not use the system's
/// mathematical library, whose results differ between systems.
pub(crate) fn one_minus_exp_neg(x: f32) -> f32 {
    -libm::expm1f(-x)
}

/// The natural logarithm, the same on all systems.
pub(crate) fn ln(x: f32) -> f32 {
    rounded(libm::log(f64::from(x)))
}

/// The nearest `f32`.
#[expect(clippy::cast_possible_truncation, reason = "rounding is intended")]
#[inline(always)]
pub(crate) const fn rounded(x: f64) -> f32 {
    x as f32
}

#[cfg(test)]
mod tests;
