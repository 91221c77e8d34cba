use serde::{Deserialize, Serialize};

use crate::normal::normal_quantile;

/// How columns of numbers are scaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scaling {
    /// To mean 0 and standard deviation 1, like scikit-learn's `StandardScaler`.
    #[default]
    Standard,
    /// To a standard normal distribution by ranks, like scikit-learn's `QuantileTransformer(output_distribution="normal")`;
    /// outliers and long tails then have little weight. Values that equal several quantiles get the middle of their ranks, also
    /// the smallest and the largest ones, which scikit-learn moves to -5.2 and 5.2: most rows of a column of many zeros would
    /// become outliers.
    Quantile,
}

/// How one column is scaled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "expected `mean` and `std`, or `quantiles`")]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum ColumnScale {
    /// `(x - mean) / std`, with the mean and the standard deviation (of the population) of the training rows; a constant column
    /// is only centred.
    Standard { mean: f64, std: f64 },
    /// The quantile of the normal distribution at the rank of a value. `quantiles` are values of the training rows at ranks that
    /// are evenly spaced from the smallest to the largest, in order.
    Quantile { quantiles: Vec<f32> },
}

/// The maximum number of quantiles of a column.
const MAX_QUANTILES: usize = 1000;

/// Ranks closer to 0 or 1 than this are moved to it, so that the result is finite: scikit-learn's threshold.
const RANK_MARGIN: f64 = 1e-7;

impl ColumnScale {
    /// By mean and standard deviation.
    pub(super) fn standard(mean: f64, std: f64) -> Self {
        Self::Standard { mean, std: if std > 0.0 && (1.0 / std).is_finite() { std } else { 1.0 } }
    }

    /// By the ranks of `values`, of which there is at least one. One quantile for 30 values, at least 10 and at most 1000.
    pub(super) fn quantile(mut values: Vec<f32>) -> Self {
        values.sort_unstable_by(f32::total_cmp);
        let n_quantiles = (values.len() / 30).clamp(10, MAX_QUANTILES);
        let quantile = |i: usize| {
            let at = i as f64 / (n_quantiles - 1) as f64 * (values.len() - 1) as f64;
            let (below, share) = (at.floor() as usize, at.fract() as f32);
            let above = values[(below + 1).min(values.len() - 1)];
            if share == 0.0 { values[below] } else { values[below] * (1.0 - share) + above * share }
        };
        Self::Quantile { quantiles: (0..n_quantiles).map(quantile).collect() }
    }

    /// The scaled value.
    pub fn apply(&self, x: f64) -> f32 {
        match self {
            Self::Standard { mean, std } => ((x - mean) / std) as f32,
            Self::Quantile { quantiles } => {
                let rank = rank(quantiles, x as f32).clamp(RANK_MARGIN, 1.0 - RANK_MARGIN);
                normal_quantile(rank) as f32
            }
        }
    }
}

/// The rank of `x` among quantiles, from 0 to 1: linear between two of them; if `x` equals several, the middle of their ranks.
fn rank(quantiles: &[f32], x: f32) -> f64 {
    let (below, not_above) = (quantiles.partition_point(|&q| q < x), quantiles.partition_point(|&q| q <= x));
    let last = (quantiles.len() - 1) as f64;
    if below < not_above {
        // `x` equals these quantiles: the middle of their ranks.
        return (below + not_above - 1) as f64 / 2.0 / last;
    }
    if below == 0 {
        return 0.0;
    }
    if below == quantiles.len() {
        return 1.0;
    }
    let (left, right) = (f64::from(quantiles[below - 1]), f64::from(quantiles[below]));
    (below as f64 - 1.0 + (f64::from(x) - left) / (right - left)) / last
}

#[cfg(test)]
mod tests {
    use super::ColumnScale;

    #[test]
    fn ranks_become_normal_quantiles() {
        let scale = ColumnScale::quantile((0..=1000).map(|i| (i as f32 / 100.0).exp()).collect());
        for (x, z) in [(5.0_f64.exp(), 0.0), (9.75_f64.exp(), 1.96), (0.5_f64.exp(), -1.645), (0.0, -5.199), (1e30, 5.199)] {
            assert!((scale.apply(x) - z).abs() < 0.06, "{x}: {}", scale.apply(x));
        }
        assert_eq!(ColumnScale::quantile(vec![3.0]).apply(3.0), 0.0, "a constant column is centred");
        assert_eq!(ColumnScale::standard(1e-39, 1e-40).apply(2e-39), 10.0, "a column of tiny numbers is not constant");
        assert_eq!(ColumnScale::standard(3.0, 0.0).apply(5.0), 2.0, "a constant column is only centred");
    }
}
