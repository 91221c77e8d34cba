//! The elementary functions over vectors of `f32`, without branches.
//!
//! Every step is an IEEE 754 operation or a fused multiply-add, so results are bit-identical for every vector width, and for
//! constant folding (which evaluates on [`pulp::Scalar`]). The error bounds stated here are checked by `tests/it/expr.rs`.

use pulp::Simd;

use crate::float::rounded;

/// 1.5 · 2²³. Adding it to a small number rounds that number to an integer, which is then in the low bits of the sum.
const SHIFT: f32 = 12_582_912.0;

/// The density of the standard normal distribution at 0, `1 / √(2π)`.
pub(super) const NORMAL_DENSITY_AT_0: f32 = 0.398_942_3;

/// `sign` with the magnitude of `magnitude`, which is not negative.
#[inline(always)]
fn with_sign_of<S: Simd>(simd: S, magnitude: S::f32s, sign: S::f32s) -> S::f32s {
    simd.or_f32s(magnitude, simd.and_f32s(simd.splat_f32s(-0.0), sign))
}

/// The polynomial with `coefficients`, highest degree first, at `x`.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(simd: S, x: S::f32s, coefficients: [f32; N]) -> S::f32s {
    let mut sum = simd.splat_f32s(coefficients[0]);
    for &coefficient in &coefficients[1..] {
        sum = simd.mul_add_f32s(sum, x, simd.splat_f32s(coefficient));
    }
    sum
}

/// `x` limited to `low..=high`; NaN stays NaN.
#[inline(always)]
fn limit<S: Simd>(simd: S, x: S::f32s, low: f32, high: f32) -> S::f32s {
    at_least(simd, low, at_most(simd, high, x))
}

/// The lesser of `bound`, which is not 0, and `x`; NaN stays NaN.
#[inline(always)]
fn at_most<S: Simd>(simd: S, bound: f32, x: S::f32s) -> S::f32s {
    let bound = simd.splat_f32s(bound);
    if extrema_keep_nan::<S>() { simd.min_f32s(bound, x) } else { simd.select_f32s(simd.greater_than_f32s(x, bound), bound, x) }
}

/// The greater of `bound`, which is not 0, and `x`; NaN stays NaN.
#[inline(always)]
fn at_least<S: Simd>(simd: S, bound: f32, x: S::f32s) -> S::f32s {
    let bound = simd.splat_f32s(bound);
    if extrema_keep_nan::<S>() { simd.max_f32s(bound, x) } else { simd.select_f32s(simd.less_than_f32s(x, bound), bound, x) }
}

/// Whether the minimum and the maximum of a number and NaN, in this order, are NaN: on AVX they are the second operand. For
/// scalars they are the number.
const fn extrema_keep_nan<S: Simd>() -> bool {
    cfg!(target_arch = "x86_64") && S::F32_LANES >= 8
}

/// `2^(n + bias)` for a sum `shifted = n + SHIFT`, as two factors that are each a normal number: `2^128` is not an `f32`, and a
/// subnormal result must be rounded once.
#[inline(always)]
fn power_of_two_factors<S: Simd>(simd: S, shifted: S::f32s) -> [S::f32s; 2] {
    // n + 256, which is positive, so that a logical shift halves it.
    let offset = simd.splat_u32s(SHIFT.to_bits().wrapping_sub(256));
    let n = simd.sub_u32s(simd.transmute_u32s_f32s(shifted), offset);
    let half = simd.wrapping_dyn_shr_u32s(n, simd.splat_u32s(1));
    let rest = simd.sub_u32s(n, half);
    // 2^(half - 128), by its exponent half - 128 + 127.
    let power = |n| {
        let exponent = simd.sub_u32s(n, simd.splat_u32s(1));
        simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23)))
    };
    [power(half), power(rest)]
}

/// `x = n ln 2 + r` with `|r| ≤ ln 2 / 2`: `n + SHIFT` and `r` (Cody & Waite 1980).
#[inline(always)]
fn reduce_by_ln_2<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let shift = simd.splat_f32s(SHIFT);
    let shifted = simd.mul_add_f32s(x, simd.splat_f32s(std::f32::consts::LOG2_E), shift);
    let n = simd.sub_f32s(shifted, shift);
    let r = simd.mul_add_f32s(n, simd.splat_f32s(-std::f32::consts::LN_2), x);
    (shifted, simd.mul_add_f32s(n, simd.splat_f32s(1.904_654_2e-9), r))
}

/// `(exp(r) - 1 - r) / r²` for `|r| ≤ ln 2 / 2`.
const EXP: [f32; 6] = [1.987_569_1e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];

/// `exp(x)` within 1 ulp, including subnormal results.
#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // exp(89) overflows and exp(-104) is below half of the smallest subnormal number.
    let (shifted, r) = reduce_by_ln_2(simd, limit(simd, x, -104.0, 89.0));
    let [a, b] = power_of_two_factors(simd, shifted);
    simd.mul_f32s(simd.mul_f32s(exp_of_reduced(simd, r), a), b)
}

/// `exp(x) - 1` within 2 ulp.
#[inline(always)]
pub(super) fn expm1<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let (shifted, r) = reduce_by_ln_2(simd, limit(simd, x, -18.0, 89.0));
    let p = polynomial(simd, r, EXP);
    let p = simd.mul_add_f32s(simd.mul_f32s(p, r), r, r);
    // Half the result, since 2^128 is not an `f32`: 2^(n-1) (p + 1) - 1/2.
    let half = power_of_two(simd, shifted, 126);
    let y = simd.mul_add_f32s(half, p, simd.sub_f32s(half, simd.splat_f32s(0.5)));
    with_sign_of(simd, simd.add_f32s(y, y), x)
}

/// `log(1 + f)` for `-1/3 ≤ f ≤ 1/3`, plus `exponent ln 2`.
#[inline(always)]
fn log_of_reduced<S: Simd>(simd: S, f: S::f32s, exponent: S::f32s) -> S::f32s {
    let s = simd.mul_f32s(f, f);
    let r = polynomial(simd, s, [-0.130_310_06, -0.121_483_51, -0.166_846_13, -0.249_996_2]);
    let t = polynomial(simd, s, [0.140_869_14, 0.139_814_85, 0.200_120_35]);
    let p = simd.mul_add_f32s(t, f, r);
    let p = simd.mul_add_f32s(p, f, simd.splat_f32s(0.333_331_97));
    let p = simd.mul_add_f32s(p, f, simd.splat_f32s(-0.5));
    let p = simd.mul_add_f32s(p, s, f);
    simd.mul_add_f32s(exponent, simd.splat_f32s(std::f32::consts::LN_2), p)
}

/// The exponent `e` for which `u / 2^e` is in `2/3..4/3`, at its position in the bits of an `f32` (`e · 2²³`), and as a number.
#[inline(always)]
fn exponent_of<S: Simd>(simd: S, u: S::f32s) -> (S::u32s, S::f32s) {
    let e = simd.sub_u32s(simd.transmute_u32s_f32s(u), simd.splat_u32s(0x3F2A_AAAB));
    let e = simd.and_u32s(e, simd.splat_u32s(0xFF80_0000));
    // e + 128 is positive; in the low bits of 2²³ it makes a number.
    let biased = simd.wrapping_dyn_shr_u32s(simd.add_u32s(e, simd.splat_u32s(128 << 23)), simd.splat_u32s(23));
    let number = simd.transmute_f32s_u32s(simd.or_u32s(biased, simd.splat_u32s(0x4B00_0000)));
    (e, simd.sub_f32s(number, simd.splat_f32s(8_388_608.0 + 128.0)))
}

/// `y`, except where `u` is not both positive and finite: `log` is then `u` itself for +∞ and NaN, -∞ for 0, and NaN below.
#[inline(always)]
fn log_of_specials<S: Simd>(simd: S, u: S::f32s, y: S::f32s) -> S::f32s {
    let (zero, infinity) = (simd.splat_f32s(0.0), simd.splat_f32s(f32::INFINITY));
    let y = simd.select_f32s(simd.less_than_f32s(u, infinity), y, u);
    let y = simd.select_f32s(simd.equal_f32s(u, zero), simd.splat_f32s(f32::NEG_INFINITY), y);
    simd.select_f32s(simd.less_than_f32s(u, zero), simd.splat_f32s(f32::NAN), y)
}

/// `log(x)` within 1 ulp.
#[inline(always)]
pub(super) fn log<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let subnormal = simd.less_than_f32s(x, simd.splat_f32s(f32::MIN_POSITIVE));
    let a = simd.select_f32s(subnormal, simd.mul_f32s(x, simd.splat_f32s(8_388_608.0)), x);
    let (e, exponent) = exponent_of(simd, a);
    let f = simd.transmute_f32s_u32s(simd.sub_u32s(simd.transmute_u32s_f32s(a), e));
    let f = simd.sub_f32s(f, simd.splat_f32s(1.0));
    let shifted = simd.sub_f32s(exponent, simd.splat_f32s(23.0));
    let y = log_of_reduced(simd, f, simd.select_f32s(subnormal, shifted, exponent));
    log_of_specials(simd, x, y)
}

/// `log(1 + x)` within 2 ulp.
#[inline(always)]
pub(super) fn log1p<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let one = simd.splat_f32s(1.0);
    let u = simd.add_f32s(x, one);
    let (e, exponent) = exponent_of(simd, u);
    // x / 2^e + (1 / 2^e - 1), the parenthesis computed from 4 / 2^e, which is a normal number.
    let scaled = simd.transmute_f32s_u32s(simd.sub_u32s(simd.transmute_u32s_f32s(x), e));
    let four = simd.transmute_f32s_u32s(simd.sub_u32s(simd.splat_u32s(4.0_f32.to_bits()), e));
    let bracket = simd.mul_add_f32s(four, simd.splat_f32s(0.25), simd.splat_f32s(-1.0));
    let y = with_sign_of(simd, log_of_reduced(simd, simd.add_f32s(scaled, bracket), exponent), x);
    log_of_specials(simd, u, y)
}

/// `tanh(x)` within 2.5 ulp: `e / (e + 2)` with `e = exp(2 |x|) - 1`.
#[inline(always)]
pub(super) fn tanh<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // tanh(10) is 1 in f32.
    let a = at_most(simd, 10.0, simd.abs_f32s(x));
    let e = expm1(simd, simd.add_f32s(a, a));
    with_sign_of(simd, simd.div_f32s(e, simd.add_f32s(e, simd.splat_f32s(2.0))), x)
}

/// `exp(r)` for `|r| ≤ ln 2 / 2`.
#[inline(always)]
fn exp_of_reduced<S: Simd>(simd: S, r: S::f32s) -> S::f32s {
    let p = polynomial(simd, r, EXP);
    let p = simd.mul_add_f32s(simd.mul_f32s(p, r), r, r);
    simd.add_f32s(p, simd.splat_f32s(1.0))
}

/// `2^(n + bias - 127)` for a sum `shifted = n + SHIFT` and `0 ≤ n + bias ≤ 255`; 0 for the smallest, infinity for the largest.
#[inline(always)]
fn power_of_two<S: Simd>(simd: S, shifted: S::f32s, bias: u32) -> S::f32s {
    let exponent = simd.sub_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(SHIFT.to_bits().wrapping_sub(bias)));
    simd.transmute_f32s_u32s(simd.wrapping_dyn_shl_u32s(exponent, simd.splat_u32s(23)))
}

/// `exp(x)` for `x ≤ 0` within 1 ulp, but 0 where that is subnormal, below -87.7. NaN stays NaN.
#[inline(always)]
pub(crate) fn exp_of_non_positive<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let (shifted, r) = reduce_by_ln_2(simd, at_least(simd, -88.2, x));
    simd.mul_f32s(exp_of_reduced(simd, r), power_of_two(simd, shifted, 127))
}

/// `1 / (1 + exp(-x))` within 2.5 ulp.
#[inline(always)]
pub(super) fn sigmoid<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // 1/2 / (1/2 + exp(-x) / 2), since 2^128 is not an `f32`. At -87.3 the power is 0, and at 89.5 infinite.
    let half = simd.splat_f32s(0.5);
    let (shifted, r) = reduce_by_ln_2(simd, limit(simd, simd.neg_f32s(x), -87.3, 89.5));
    let sum = simd.mul_add_f32s(exp_of_reduced(simd, r), power_of_two(simd, shifted, 126), half);
    simd.div_f32s(half, sum)
}

/// The error function within 2 ulp: `x + x p(x²)` up to 1, and a polynomial around the middle of the interval from there to 3.92.
#[inline(always)]
pub(super) fn erf<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // erf(3.92) is 1 in f32.
    let t = at_most(simd, 3.92, simd.abs_f32s(x));
    let far = polynomial(simd, simd.sub_f32s(t, simd.splat_f32s(2.46)), ERF_FAR);
    let far = at_most(simd, 1.0, far);
    let near = simd.mul_add_f32s(polynomial(simd, simd.mul_f32s(t, t), ERF_NEAR), t, t);
    with_sign_of(simd, simd.select_f32s(simd.greater_than_f32s(t, simd.splat_f32s(1.0)), far, near), x)
}

/// `(1 + erf(x / √2)) / 2`.
#[inline(always)]
pub(super) fn normal_cdf<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let erf = erf(simd, simd.mul_f32s(x, simd.splat_f32s(std::f32::consts::FRAC_1_SQRT_2)));
    simd.mul_f32s(simd.add_f32s(erf, simd.splat_f32s(1.0)), simd.splat_f32s(0.5))
}

/// The derivative of GELU, `Φ(x) + φ(x) x` with the density `φ` of the standard normal distribution, in the order of operations
/// of [`Expr::derivative`](super::Expr::derivative).
#[inline(always)]
pub(super) fn gelu_slope<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let bell = exp(simd, simd.mul_f32s(simd.splat_f32s(-0.5), simd.mul_f32s(x, x)));
    let density = simd.mul_f32s(simd.splat_f32s(NORMAL_DENSITY_AT_0), bell);
    simd.add_f32s(normal_cdf(simd, x), simd.mul_f32s(density, x))
}

/// `erf(x) / x - 1` for `|x| ≤ 1`, by `x²`.
const ERF_NEAR: [f32; 6] = [-5.654_106e-4, 4.923_277_5e-3, -2.671_638_5e-2, 1.128_036_4e-1, -3.761_235e-1, 1.283_791_2e-1];
/// `erf(x)` for `1 ≤ x ≤ 3.92`, by `x - 2.46`.
const ERF_FAR: [f32; 13] = [
    -9.166_921e-6,
    2.536_313_8e-5,
    5.189_641_5e-5,
    -3.013_669_6e-4,
    3.906_786e-4,
    4.615_698_4e-4,
    -2.963_119_7e-3,
    6.798_153_3e-3,
    -9.904_964e-3,
    9.832_826e-3,
    -6.535_748e-3,
    2.656_208e-3,
    9.994_967e-1,
];

/// The maximum absolute value of an argument that [`sin`] and [`cos`] reduce in `f32`.
pub(super) const SIN_LIMIT: f32 = 71_476.06;

/// `sin(x)` within 2 ulp for `|x|` up to [`SIN_LIMIT`].
#[inline(always)]
pub(super) fn sin<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let (quadrant, r) = reduce_by_half_pi(simd, x);
    let y = sin_or_cos_of_reduced(simd, quadrant, r);
    // sin(-0) is -0.
    simd.select_f32s(simd.equal_f32s(x, simd.splat_f32s(0.0)), x, y)
}

/// `cos(x)` within 2 ulp for `|x|` up to [`SIN_LIMIT`].
#[inline(always)]
pub(super) fn cos<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let (quadrant, r) = reduce_by_half_pi(simd, x);
    sin_or_cos_of_reduced(simd, simd.add_u32s(quadrant, simd.splat_u32s(1)), r)
}

/// `x = n π/2 + r` with `|r| ≤ π/4`: `n`, of which the low two bits count, and `r`.
#[inline(always)]
fn reduce_by_half_pi<S: Simd>(simd: S, x: S::f32s) -> (S::u32s, S::f32s) {
    let shift = simd.splat_f32s(SHIFT);
    let shifted = simd.mul_add_f32s(x, simd.splat_f32s(std::f32::consts::FRAC_2_PI), shift);
    let n = simd.sub_f32s(shifted, shift);
    // π/2 in three parts, the first of which is short.
    let r = simd.mul_add_f32s(n, simd.splat_f32s(f32::from_bits(0xBFC9_0FD8)), x);
    let r = simd.mul_add_f32s(n, simd.splat_f32s(-3.139_164_7e-7), r);
    let r = simd.mul_add_f32s(n, simd.splat_f32s(-5.390_302_5e-15), r);
    (simd.sub_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(SHIFT.to_bits())), r)
}

/// `sin(quadrant π/2 + r)`.
#[inline(always)]
fn sin_or_cos_of_reduced<S: Simd>(simd: S, quadrant: S::u32s, r: S::f32s) -> S::f32s {
    let s = simd.mul_f32s(r, r);
    let sin = polynomial(simd, s, [2.865_679_6e-6, -1.985_599_2e-4, 8.333_386e-3, -1.666_666_7e-1]);
    let sin = simd.mul_add_f32s(sin, simd.mul_f32s(s, r), r);
    let cos = polynomial(simd, s, [2.446_770_7e-5, -1.388_773e-3, 4.166_666_6e-2, -0.5, 1.0]);
    let is_odd = simd.equal_u32s(simd.and_u32s(quadrant, simd.splat_u32s(1)), simd.splat_u32s(1));
    let y = simd.select_f32s(is_odd, cos, sin);
    let sign = simd.wrapping_dyn_shl_u32s(simd.and_u32s(quadrant, simd.splat_u32s(2)), simd.splat_u32s(30));
    simd.xor_f32s(y, simd.transmute_f32s_u32s(sign))
}

/// The largest integer that is not above `x`.
#[inline(always)]
pub(super) fn floor<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let (a, big) = (simd.abs_f32s(x), simd.splat_f32s(8_388_608.0));
    let nearest = with_sign_of(simd, simd.sub_f32s(simd.add_f32s(a, big), big), x);
    let above = simd.greater_than_f32s(nearest, x);
    let y = simd.select_f32s(above, simd.sub_f32s(nearest, simd.splat_f32s(1.0)), nearest);
    // Numbers from 2²³ on are integers; NaN stays NaN.
    simd.select_f32s(simd.less_than_f32s(a, big), y, x)
}

/// 1, 0 or -1; 0 for NaN, as in PyTorch.
#[inline(always)]
pub(super) fn sign<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let zero = simd.splat_f32s(0.0);
    let one = with_sign_of(simd, simd.splat_f32s(1.0), x);
    let is_not_zero = simd.or_m32s(simd.less_than_f32s(x, zero), simd.less_than_f32s(zero, x));
    simd.select_f32s(is_not_zero, one, zero)
}

/// 1, or 0 for infinities and NaN.
#[inline(always)]
pub(super) fn is_finite<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let is_finite = simd.less_than_or_equal_f32s(simd.abs_f32s(x), simd.splat_f32s(f32::MAX));
    simd.select_f32s(is_finite, simd.splat_f32s(1.0), simd.splat_f32s(0.0))
}

/// The greater; NaN if either is.
#[inline(always)]
pub(super) fn max<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
    let y = simd.select_f32s(simd.greater_than_f32s(a, b), a, b);
    simd.select_f32s(simd.equal_f32s(a, a), y, a)
}

/// The lesser; NaN if either is.
#[inline(always)]
pub(super) fn min<S: Simd>(simd: S, a: S::f32s, b: S::f32s) -> S::f32s {
    let y = simd.select_f32s(simd.less_than_f32s(a, b), a, b);
    simd.select_f32s(simd.equal_f32s(a, a), y, a)
}

/// `sin(x)` beyond [`SIN_LIMIT`], one number at a time.
pub(super) fn sin_of_large(x: f32) -> f32 {
    rounded(f64::from(x).sin())
}

/// `cos(x)` beyond [`SIN_LIMIT`], one number at a time.
pub(super) fn cos_of_large(x: f32) -> f32 {
    rounded(f64::from(x).cos())
}

/// `a` to the power `b` within 1 ulp, one number at a time.
pub(super) fn pow(a: f32, b: f32) -> f32 {
    rounded(f64::from(a).powf(f64::from(b)))
}
