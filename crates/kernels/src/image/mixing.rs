//! How two rows of a batch are mixed, and the distribution of their shares.

use crate::error::{Error, check_supported};

/// How a row of a batch is mixed with another, which is drawn from all rows.
///
/// The share of the other row is drawn from a symmetric beta distribution, which has the density
/// `p^(alpha - 1) (1 - p)^(alpha - 1)` up to a factor. For `alpha = 1` all shares are equally likely; a smaller `alpha` mostly
/// leaves one of the two rows nearly unchanged, a larger one mixes them in nearly equal parts.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Mixing {
    /// The weighted mean of both rows (Zhang et al. 2017, arXiv:1710.09412).
    Mixup {
        /// The parameter of the distribution: above 0, at most 1000.
        alpha: f32,
    },
    /// A rectangle at a random position shows the other image (Yun et al. 2019, arXiv:1905.04899). It has the proportions of the
    /// image and covers the share that was drawn, less if it extends beyond an edge. The other image's share of the label is the
    /// area that remains visible.
    CutMix {
        /// The parameter of the distribution: above 0, at most 1000.
        alpha: f32,
    },
}

/// Elements of the quantiles of a [`Mixing`] (u32).
pub const N_QUANTILES: usize = 1025;

/// The largest `alpha`: its shares differ from 1/2 by 0.01 on average.
const MAX_ALPHA: f32 = 1000.0;

impl Mixing {
    /// What [`MixRows`](crate::MixRows) draws from: the quantiles at multiples of 1/1024 of the other row's share, or for CutMix
    /// of half its square root, in units of 2⁻³².
    ///
    /// Numbers between two quantiles are interpolated linearly. The distribution function of the drawn numbers thus equals the
    /// beta distribution's at each quantile, and differs from it by less than 1/1024 in between.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless `alpha` is above 0 and at most 1000.
    pub fn quantiles(&self) -> Result<Vec<u32>, Error> {
        let (Self::Mixup { alpha } | Self::CutMix { alpha }) = *self;
        let is_valid = alpha > 0.0 && alpha <= MAX_ALPHA;
        check_supported("mix_rows", is_valid, || format!("alpha = {alpha}"), "0 < alpha <= 1000")?;
        let share = |i: usize| {
            let lower = beta_quantile(f64::from(alpha), i.min(N_QUANTILES - 1 - i) as f64 / (N_QUANTILES - 1) as f64);
            if 2 * i < N_QUANTILES { lower } else { 1.0 - lower }
        };
        #[expect(clippy::cast_possible_truncation, reason = "it is at most 2^32 - 1")]
        let units = |number: f64| (number * 4_294_967_296.0).round().min(f64::from(u32::MAX)) as u32;
        Ok((0..N_QUANTILES).map(share).map(|share| units(if self.is_cut() { 0.5 * share.sqrt() } else { share })).collect())
    }

    /// Whether a part of the image is replaced.
    pub fn is_cut(&self) -> bool {
        matches!(self, Self::CutMix { .. })
    }
}

/// The number in `[0, 1/2]` below which a symmetric beta distribution has the probability `p`, at most 1/2.
fn beta_quantile(alpha: f64, p: f64) -> f64 {
    // The distribution function is 1/2 at 1/2, so neither it nor its integral needs to be normalised.
    let at_half = beta_series(alpha, 0.5);
    let probability = |x: f64| 0.5 * (4.0 * x * (1.0 - x)).powf(alpha) * beta_series(alpha, x) / at_half;
    let (mut low, mut high) = (0.0, 0.5);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if probability(middle) < p {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

/// The hypergeometric function `F(2 alpha, 1; alpha + 1; x)` for `x <= 1/2`, all of whose terms are positive: the integral of the
/// density up to `x` is `(x (1 - x))^alpha / alpha` times this function (NIST Digital Library of Mathematical Functions, 8.17.8).
fn beta_series(alpha: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut k) = (1.0, 1.0, 0.0);
    while term > 1e-17 * sum {
        term *= x * (2.0 * alpha + k) / (alpha + 1.0 + k);
        sum += term;
        k += 1.0;
    }
    sum
}
