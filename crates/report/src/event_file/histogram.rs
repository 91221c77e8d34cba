//! TensorFlow's histograms: buckets whose limits grow by 10 %, on both sides of 0.

use super::message::Histogram;

const SMALLEST: f64 = 1e-12;
const LARGEST: f64 = 1e20;
const GROWTH: f64 = 1.1;

/// The histogram of the finite values, or `None` if there are none.
pub(super) fn of(values: &[f32]) -> Option<Histogram> {
    let limits = limits();
    let mut counts = vec![0.0; limits.len()];
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut num, mut sum, mut sum_squares) = (0.0, 0.0, 0.0);
    for value in values.iter().filter(|value| value.is_finite()).map(|&value| f64::from(value)) {
        // A bucket holds the values from the previous limit (included) up to its own limit (excluded).
        counts[limits.partition_point(|&limit| limit <= value).min(limits.len() - 1)] += 1.0;
        (min, max) = (min.min(value), max.max(value));
        (num, sum, sum_squares) = (num + 1.0, sum + value, sum_squares + value * value);
    }
    let first = counts.iter().position(|&count| count > 0.0)?;
    let last = counts.iter().rposition(|&count| count > 0.0)?;
    // TensorBoard takes the lower limit of the first bucket from an empty bucket.
    let kept = first.saturating_sub(1)..=last;
    let (bucket_limit, bucket) = (limits[kept.clone()].to_vec(), counts[kept].to_vec());
    Some(Histogram { min, max, num, sum, sum_squares, bucket_limit, bucket })
}

/// The upper limits of all buckets.
fn limits() -> Vec<f64> {
    let positive: Vec<f64> =
        std::iter::successors(Some(SMALLEST), |limit| Some(limit * GROWTH)).take_while(|&limit| limit < LARGEST).collect();
    let negative = positive.iter().rev().map(|limit| -limit);
    let ends = [f64::from(f32::MIN), f64::MAX];
    std::iter::once(ends[0]).chain(negative).chain([0.0]).chain(positive.iter().copied()).chain([ends[1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn finite_values_are_in_buckets_and_others_are_not() {
        let histogram = of(&[0.5, f32::NAN, -0.25, f32::INFINITY, 0.0, f32::NEG_INFINITY]).expect("some are finite");
        assert_eq!((histogram.num, histogram.min, histogram.max, histogram.sum), (3.0, -0.25, 0.5, 0.25));
        assert_eq!(histogram.bucket.iter().sum::<f64>(), 3.0);
        assert_eq!(histogram.bucket.len(), histogram.bucket_limit.len());
    }
}
