//! How long the networks that are left will take.

use std::time::Duration;

/// About the time of the networks that are left, at the pace of those that were trained: `costs` are those of the networks of a
/// fold, `n_trained`, at least one, are of all `n_folds`. At most the time that is `left`.
pub(crate) fn to_go(elapsed: Duration, costs: &[f64], n_trained: usize, n_folds: usize, left: Option<Duration>) -> Duration {
    let (all, trained) = (costs.iter().sum::<f64>(), costs.iter().cycle().take(n_trained).sum::<f64>());
    let at_this_pace = elapsed.mul_f64((n_folds as f64 * all - trained).max(0.0) / trained);
    left.map_or(at_this_pace, |left| left.min(at_this_pace))
}

#[cfg(test)]
mod tests {
    use super::to_go;
    use std::time::Duration;

    #[test]
    fn the_rest_takes_as_long_as_before_or_ends_with_the_time() {
        let seconds = Duration::from_secs;
        assert_eq!(to_go(seconds(10), &[1.0; 4], 1, 1, None), seconds(30));
        assert_eq!(to_go(seconds(30), &[1.0; 4], 3, 1, None), seconds(10));
        assert_eq!(to_go(seconds(30), &[1.0; 4], 1, 1, Some(seconds(20))), seconds(20));
        assert_eq!(to_go(seconds(20), &[1.0, 0.25], 2, 2, None), seconds(20), "another fold");
        assert_eq!(to_go(seconds(20), &[1.0, 0.25], 1, 1, None), seconds(5), "one that takes less");
    }
}
