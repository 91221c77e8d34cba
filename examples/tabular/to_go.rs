//! How long the networks that are left will take.

use std::time::Duration;

/// About the time of the networks that are left, at the pace of those that were trained, of which there is at least one; at most
/// the time that is `left`.
pub(crate) fn to_go(elapsed: Duration, n_trained: usize, n_networks: usize, left: Option<Duration>) -> Duration {
    let at_this_pace = elapsed.mul_f64(n_networks.saturating_sub(n_trained) as f64 / n_trained.max(1) as f64);
    left.map_or(at_this_pace, |left| left.min(at_this_pace))
}

#[cfg(test)]
mod tests {
    use super::to_go;
    use std::time::Duration;

    #[test]
    fn the_rest_takes_as_long_as_before_or_ends_with_the_time() {
        let seconds = Duration::from_secs;
        assert_eq!(to_go(seconds(10), 1, 4, None), seconds(30));
        assert_eq!(to_go(seconds(30), 3, 4, None), seconds(10));
        assert_eq!(to_go(seconds(30), 1, 4, Some(seconds(20))), seconds(20));
    }
}
