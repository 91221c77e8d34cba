//! How close two results must be: one table by dtype, applied as `|found - expected| <= absolute + relative * |expected|`.

use brisk_kernels::DType;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    pub(crate) absolute: f64,
    pub(crate) relative: f64,
}

/// The tolerance of a kernel, unless its test says why it differs.
pub(crate) const fn tolerance(dtype: DType) -> Tolerance {
    match dtype {
        DType::F32 => Tolerance { absolute: 1e-6, relative: 1e-5 },
        DType::F16 => Tolerance { absolute: 1e-3, relative: 1e-3 },
        DType::Bf16 => Tolerance { absolute: 1e-2, relative: 1e-2 },
        _ => Tolerance { absolute: 0.0, relative: 0.0 },
    }
}

/// The tolerance of an f32 result.
pub(crate) const DEFAULT: Tolerance = tolerance(DType::F32);

/// A gradient compared with a finite difference, whose error is the square of the step plus the rounding error divided by the
/// step.
pub(crate) const GRADIENT: Tolerance = Tolerance { absolute: 2e-3, relative: 2e-3 };

impl Tolerance {
    /// For sums of `n` products of numbers around one, whose rounding errors grow like a random walk.
    pub(crate) fn of_sum(n: usize) -> Self {
        let Self { absolute, relative } = DEFAULT;
        Self { absolute: absolute * (n as f64).sqrt().max(1.0), relative }
    }

    pub(crate) fn holds(self, found: f64, expected: f64) -> bool {
        (found - expected).abs() <= self.absolute + self.relative * expected.abs()
            || found == expected
            || (found.is_nan() && expected.is_nan())
    }
}

#[track_caller]
pub(crate) fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: Tolerance) {
    assert_eq!(found.len(), expected.len(), "{what}: lengths");
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let holds = tolerance.holds(f64::from(found), f64::from(expected));
        assert!(holds, "{what}[{i}] is {found}, expected {expected} within {tolerance:?}");
    }
}
