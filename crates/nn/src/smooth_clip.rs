use brisk_kernels::expr::Expr;
use brisk_tensor::{ElementwiseOperation, Error, Tensor};
use serde::{Deserialize, Serialize};

/// Scales each column by its median and its quartiles, and moves outliers smoothly to within ±3: `z / √(1 + (z/3)²)` for
/// `z = (x - center) factor`. It has no parameters.
///
/// # Shapes
/// `x`: `[n_rows, n_columns]`, as the result.
/// # Reference
/// `median_center`, `robust_scale` and `smooth_clip` of the package `pytabkit`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SmoothClip {
    /// What is subtracted from each column.
    pub centers: Vec<f32>,
    /// What each column is then multiplied by.
    pub factors: Vec<f32>,
}

impl SmoothClip {
    /// The medians of the columns of `rows`, `[n_rows, n_columns]`, and the reciprocals of their interquartile ranges; of a
    /// column whose quartiles are equal, twice the reciprocal of its range; 0 for a constant column.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::SmoothClip;
    ///
    /// // 1 to 5, mostly zeros, and a constant.
    /// let rows = [1.0, 0.0, 7.0, 2.0, 0.0, 7.0, 3.0, 0.0, 7.0, 4.0, 0.0, 7.0, 5.0, 4.0, 7.0];
    /// let clip = SmoothClip::of_rows(&rows, 3);
    /// assert_eq!((clip.centers, clip.factors), (vec![3.0, 0.0, 7.0], vec![0.5, 0.5, 0.0]));
    /// ```
    pub fn of_rows(rows: &[f32], n_columns: usize) -> Self {
        let (mut centers, mut factors) = (Vec::with_capacity(n_columns), Vec::with_capacity(n_columns));
        for column in 0..n_columns {
            let mut values: Vec<f32> = rows.iter().skip(column).step_by(n_columns).copied().collect();
            values.sort_unstable_by(f32::total_cmp);
            let quantile = |share: f64| {
                let at = share * values.len().saturating_sub(1) as f64;
                let (below, rest) = (at.floor() as usize, at.fract() as f32);
                let value = |i: usize| values.get(i).copied().unwrap_or(0.0);
                if rest == 0.0 { value(below) } else { value(below) + (value(below + 1) - value(below)) * rest }
            };
            let [lowest, lower, median, upper, highest] = [0.0, 0.25, 0.5, 0.75, 1.0].map(quantile);
            let width = if upper > lower { upper - lower } else { (highest - lowest) / 2.0 };
            centers.push(median);
            factors.push(if (1.0 / width).is_finite() { 1.0 / width } else { 0.0 });
        }
        Self { centers, factors }
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` has a different number of columns.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let n_columns = self.centers.len();
        if !matches!(*x.shape(), [_, found] if found == n_columns && found == self.factors.len()) {
            let error = Error::Shape {
                op: "smooth_clip",
                arg: "x",
                expected: format!("[n_rows, {n_columns}]"),
                found: x.shape().to_vec(),
            };
            return x.graph().failed(error, x.dtype(), x.shape());
        }
        if n_columns == 0 {
            return x.clone();
        }
        let constant = |name: &str, values: &[f32]| x.graph().constant(name, values, &[1, n_columns]);
        let [of_x, center, factor] = [0, 1, 2].map(Expr::input);
        let z = (of_x - center) * factor;
        let clipped = &z * ((&z * &z) / 9.0 + 1.0).rsqrt();
        let constants = [constant("clip.centers", &self.centers), constant("clip.factors", &self.factors)];
        x.graph().apply(ElementwiseOperation::new("smooth_clip", clipped), &[x, &constants[0], &constants[1]])
    }
}
