//! Means and squared deviations of columns, in one pass.

use crate::rows::FeedElement;

/// Running mean and squared deviations of columns, by Welford's update.
#[derive(Debug, Clone)]
pub(crate) struct Moments {
    pub(crate) count: f64,
    pub(crate) mean: Vec<f64>,
    /// `Σ (x - mean)²`
    pub(crate) squares: Vec<f64>,
}

impl Moments {
    pub(crate) fn new(n_cols: usize) -> Self {
        Self { count: 0.0, mean: vec![0.0; n_cols], squares: vec![0.0; n_cols] }
    }

    /// Adds rows, in their order.
    pub(crate) fn add<T: FeedElement>(&mut self, features: &[T]) {
        for row in features.chunks_exact(self.mean.len().max(1)) {
            self.count += 1.0;
            for ((&x, mean), squares) in row.iter().zip(&mut self.mean).zip(&mut self.squares) {
                let x = f64::from(x.into());
                let off = x - *mean;
                *mean += off / self.count;
                *squares += off * (x - *mean);
            }
        }
    }

    /// Adds the rows of `other`, which come after these. Columns in which all rows have the same value keep it exactly.
    ///
    /// # Reference
    /// Chan, Golub & LeVeque 1983, "Algorithms for Computing the Sample Variance".
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.count == 0.0 {
            return self.clone_from(other);
        }
        if other.count == 0.0 {
            return;
        }
        let (before, count) = (self.count, self.count + other.count);
        let columns = self.mean.iter_mut().zip(&mut self.squares).zip(other.mean.iter().zip(&other.squares));
        for ((mean, squares), (other_mean, other_squares)) in columns {
            let off = other_mean - *mean;
            *mean += off * (other.count / count);
            *squares += other_squares + off * off * (before * other.count / count);
        }
        self.count = count;
    }
}
