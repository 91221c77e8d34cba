/// The mean of one number for each row, by the weights of the rows.
pub(super) fn weighted_mean(numbers: impl Iterator<Item = f64>, weights: Option<&[f32]>) -> f64 {
    let (mut sum, mut total) = (0.0, 0.0);
    for (row, number) in numbers.enumerate() {
        let weight = weights.map_or(1.0, |weights| f64::from(weights[row]));
        // A row that does not count may be predicted in any way.
        sum += if weight == 0.0 { 0.0 } else { weight * number };
        total += weight;
    }
    sum / total
}

/// The squared error of each prediction.
pub(super) fn squared_errors(outputs: &[f32], labels: &[f32]) -> impl Iterator<Item = f64> {
    outputs.iter().zip(labels).map(|(output, label)| (f64::from(*output) - f64::from(*label)).powi(2))
}

/// The share of a class among labels.
pub(super) fn share_of(class: usize, labels: &[f32], weights: Option<&[f32]>) -> f64 {
    weighted_mean(labels.iter().map(|&label| f64::from(u8::from(label as usize == class))), weights)
}

/// The mean of numbers, and their standard deviation.
pub(super) fn mean_and_deviation(numbers: &[f64]) -> [f64; 2] {
    let n = numbers.len() as f64;
    let mean = numbers.iter().sum::<f64>() / n;
    [mean, (numbers.iter().map(|number| (number - mean).powi(2)).sum::<f64>() / n).sqrt()]
}

/// Count, extremes, mean and sum of squared deviations of the numbers that are not missing, by Welford's update.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    pub(super) n: f64,
    pub(super) mean: f64,
    squares: f64,
    pub(super) min: f32,
    pub(super) max: f32,
}

impl Default for Moments {
    fn default() -> Self {
        Self { n: 0.0, mean: 0.0, squares: 0.0, min: f32::INFINITY, max: f32::NEG_INFINITY }
    }
}

impl Moments {
    pub(super) fn of(values: impl Iterator<Item = f32>) -> Self {
        let mut moments = Self::default();
        values.for_each(|value| moments.add(value));
        moments
    }

    pub(super) fn add(&mut self, value: f32) {
        if value.is_nan() {
            return;
        }
        (self.min, self.max) = (self.min.min(value), self.max.max(value));
        let value = f64::from(value);
        self.n += 1.0;
        let off = value - self.mean;
        self.mean += off / self.n;
        self.squares += off * (value - self.mean);
    }

    /// The standard deviation of the population.
    pub(super) fn std(&self) -> f64 {
        (self.squares / self.n.max(1.0)).sqrt()
    }
}

/// How many rows of equal weight have means that are as uncertain as that of `n_rows` rows: Kish's effective sample size.
pub(super) fn n_effective(n_rows: usize, weights: Option<&[f32]>) -> f64 {
    let Some(weights) = weights else { return n_rows as f64 };
    let [sum, squares] = [1, 2].map(|power| weights.iter().map(|&weight| f64::from(weight).powi(power)).sum::<f64>());
    sum * sum / squares
}
