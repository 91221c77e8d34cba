//! Quantiles of the standard normal distribution.

/// The number `x` such that a standard normal variable is below `x` with probability `p`, for `0 < p < 1`.
///
/// # Reference
/// P. J. Acklam's rational approximations, with a relative error below 1.2e-9.
pub(super) fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [7.784_695_709_041_462e-3, 3.224_671_290_700_398e-1, 2.445_134_137_142_996, 3.754_408_661_907_416, 1.0];
    const TAIL: f64 = 0.024_25;
    let polynomial = |x: f64, coefficients: &[f64]| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    let tail = |p: f64| {
        let q = (-2.0 * p.ln()).sqrt();
        polynomial(q, &C) / polynomial(q, &D)
    };
    if p < TAIL {
        tail(p)
    } else if p > 1.0 - TAIL {
        -tail(1.0 - p)
    } else {
        let q = p - 0.5;
        q * polynomial(q * q, &A) / polynomial(q * q, &B)
    }
}

#[cfg(test)]
mod tests {
    use super::normal_quantile;

    #[test]
    fn known_quantiles() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874), (1e-7, -5.199_337_582), (0.841_344_746, 1.0)] {
            assert!((normal_quantile(p) - z).abs() < 1e-7, "{p}: {}", normal_quantile(p));
        }
    }
}
