use std::sync::Arc;

use brisk_loader::{Ahead, Batching, Error, Loader, Shard, WeightedDraws, class_balanced_weights};

use crate::batches::{Owned, all, from};
use crate::source::numbered;

fn drawn(weights: &[f64], n_draws: usize, seed: u64, epoch: u32) -> Vec<u32> {
    let mut draws: Vec<u32> = (0..n_draws as u32).collect();
    WeightedDraws::new(weights, n_draws).unwrap().draw(seed, epoch, &mut draws);
    draws
}

/// Computed by an implementation of the specification in another language, from the table computed by hand: three quarters of the
/// first column stay, the second goes to row 2, the third stays.
#[test]
fn pinned_vectors() {
    let weights = [1.0, 0.0, 3.0];
    let expected = [0, 2, 2, 2, 2, 2, 2, 2, 2, 0, 2, 2, 0, 2, 2, 0, 2, 0, 2, 2, 2, 2, 2, 2];
    assert_eq!(drawn(&weights, 24, 42, 0), expected);
    let expected = [2, 2, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0, 2, 2, 2, 0, 2, 2, 2, 2, 2];
    assert_eq!(drawn(&weights, 24, 42, 1), expected);
}

/// Compares frequencies with weights by the chi-squared statistic: its mean is the number of rows minus one, and its standard
/// deviation the root of twice that.
#[test]
fn rows_come_as_often_as_they_weigh() {
    #[track_caller]
    fn check(weights: &[f64]) {
        let n_draws = 400_000;
        let total: f64 = weights.iter().sum();
        let mut counts = vec![0.0; weights.len()];
        drawn(weights, n_draws, 9, 3).iter().for_each(|&row| counts[row as usize] += 1.0);
        let mut statistic = 0.0;
        let mut n_freedom = -1.0;
        for (row, (count, weight)) in counts.iter().zip(weights).enumerate() {
            let expected = n_draws as f64 * weight / total;
            if *weight == 0.0 {
                assert_eq!(*count, 0.0, "row {row} weighs nothing");
            } else {
                statistic += (count - expected) * (count - expected) / expected;
                n_freedom += 1.0;
            }
        }
        let limit = n_freedom + 5.0 * (2.0_f64 * n_freedom).sqrt();
        assert!(statistic <= limit, "statistic {statistic} for {n_freedom} degrees of freedom, limit {limit}");
    }
    check(&[1.0]);
    check(&[1.0, 1.0]);
    check(&[0.1, 0.2, 0.3, 0.4]);
    check(&[0.0, 5.0, 0.0, 1.0, 0.0]);
    check(&[1e300, 1e300, 2e300]);
    check(&[1e-300, 3e-300]);
    check(&(0..1000).map(|row| f64::from(row % 17)).collect::<Vec<_>>());
}

#[test]
fn a_row_of_weight_0_is_never_drawn() {
    // Shares that do not add up to whole numbers, so that rounding leaves columns over.
    let weights: Vec<f64> = (0..999).map(|row| if row % 3 == 0 { 0.0 } else { 1.0 / 3.0 + f64::from(row) * 1e-3 }).collect();
    for epoch in 0..5 {
        assert!(drawn(&weights, 100_000, 1, epoch).iter().all(|row| row % 3 != 0));
    }
}

#[test]
fn draws_resume_shard_and_come_ahead() {
    let source = numbered(50, 2);
    let weights: Vec<f64> = (0..50).map(|row| f64::from(row) + 1.0).collect();
    let draws = Arc::new(WeightedDraws::new(&weights, 230).unwrap());
    let batching = Batching::of(32).weighted(5, Arc::clone(&draws));
    let ids = |batches: &[Owned]| batches.iter().flat_map(|batch| batch.ids[..batch.rows].to_vec()).collect::<Vec<_>>();
    let whole = all(&source, &batching, 1);
    assert_eq!(ids(&whole), drawn(&weights, 230, 5, 1), "an epoch has as many rows as draws");
    for batch in &whole {
        for slot in 0..batch.rows {
            assert_eq!(batch.labels[slot], batch.ids[slot] as f32, "the row's own values");
        }
    }
    for taken in [0, 1, 4, 7] {
        assert_eq!(from(&source, &batching, 1, taken * 32), whole[taken..], "resumed after {taken} batches");
    }
    assert_eq!(crate::prefetch::prefetched(&source, &batching, 1, 0, Ahead { depth: 3, workers: 2 }), whole);
    let halves = [0, 1].map(|rank| all(&source, &Batching { size: 16, ..batching.clone() }.shard(Shard::blocks(rank, 2)), 1));
    for (index, batch) in whole.iter().enumerate() {
        assert_eq!([&halves[0][index].ids[..], &halves[1][index].ids].concat(), batch.ids, "batch {index} over two ranks");
    }
    let error = Loader::new(&source, batching).unwrap().epoch_from(0, 231).unwrap_err();
    assert!(matches!(error, Error::Position { position: 231, n_rows: 230 }), "found: {error}");
}

#[test]
fn classes_are_balanced() {
    assert_eq!(class_balanced_weights(&[1.0, 0.0, 1.0, 1.0, 7.0, -0.0]), [1.0 / 3.0, 0.5, 1.0 / 3.0, 1.0 / 3.0, 1.0, 0.5]);
    assert_eq!(class_balanced_weights(&[]), []);
}

#[test]
fn weights_that_cannot_be_drawn_by_are_refused() {
    #[track_caller]
    fn check(weights: &[f64], expected: &str) {
        let error = WeightedDraws::new(weights, 10).unwrap_err().to_string();
        assert!(error.starts_with(expected), "found: {error}");
    }
    check(&[1.0, -0.5], "row 1 cannot be drawn with weight -0.5");
    check(&[1.0, 1.0, f64::NAN], "row 2 cannot be drawn with weight NaN");
    check(&[f64::INFINITY], "row 0 cannot be drawn with weight inf");
    check(&[0.0, 0.0], "rows cannot be drawn: none of 2 weights is above 0");
    check(&[], "rows cannot be drawn: none of 0 weights is above 0");
    let draws = Arc::new(WeightedDraws::new(&[1.0; 9], 10).unwrap());
    let error = Loader::new(numbered(10, 1), Batching::of(1).weighted(0, draws)).unwrap_err();
    assert_eq!(error.to_string(), "9 weights to draw by, the source has 10 rows; give one weight a row");
}
