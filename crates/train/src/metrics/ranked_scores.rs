//! The scores of a binary classification, kept until all are there and then sorted.

use rayon::prelude::*;

use super::Scored;
use super::tally::{Sums, Tally, Target};
use crate::Error;

/// Rows as they came. A key has a score's order above and the label in its lowest bit.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    keys: Vec<u64>,
    /// Of the same length, or empty if all rows weigh 1.
    weights: Vec<f64>,
}

/// The weights of rows of one score.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tie {
    pub(super) negative: f64,
    pub(super) positive: f64,
}

impl Keys {
    fn push(&mut self, key: u64, weight: f64) {
        if weight != 1.0 && self.weights.is_empty() {
            self.weights = vec![1.0; self.keys.len()];
        }
        self.keys.push(key);
        if weight != 1.0 || !self.weights.is_empty() {
            self.weights.push(weight);
        }
    }

    /// The ties, from the lowest score to the highest.
    fn ties(&self) -> Vec<Tie> {
        if self.weights.is_empty() {
            let mut keys = self.keys.clone();
            keys.par_sort_unstable();
            let tie = |tied: &[u64]| {
                // Within a tie, the rows labelled 0 come first.
                let n_negative = tied.partition_point(|key| key & 1 == 0);
                Tie { negative: n_negative as f64, positive: (tied.len() - n_negative) as f64 }
            };
            return keys.chunk_by(|a, b| a >> 1 == b >> 1).map(tie).collect();
        }
        let mut rows: Vec<(u64, f64)> = self.keys.iter().copied().zip(self.weights.iter().copied()).collect();
        rows.par_sort_by_key(|row| row.0);
        let weight = |tied: &[(u64, f64)], label| tied.iter().filter(|row| row.0 & 1 == label).map(|row| row.1).sum();
        let tie = |tied: &[(u64, f64)]| Tie { negative: weight(tied, 0), positive: weight(tied, 1) };
        rows.chunk_by(|a, b| a.0 >> 1 == b.0 >> 1).map(tie).collect()
    }
}

impl Sums for Keys {
    fn add(&mut self, other: Self) {
        if self.keys.is_empty() {
            *self = other;
        } else if self.weights.is_empty() && other.weights.is_empty() {
            self.keys.extend(other.keys);
        } else {
            for (index, key) in other.keys.into_iter().enumerate() {
                self.push(key, other.weights.get(index).copied().unwrap_or(1.0));
            }
        }
    }
}

/// The scores of a metric that ranks rows.
pub(super) type RankedScores = Tally<Keys>;

impl RankedScores {
    pub(super) fn push(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        let target = Target::binary(self.metric(), rows)?;
        self.update(rows, target, Keys::default, |keys, row| {
            keys.push(u64::from(ordered_bits(row.outputs[0])) << 1 | u64::from(row.is_positive()), row.weight);
        })
    }

    /// The ties from the lowest score to the highest, and the weights of all rows.
    pub(super) fn ranked(&self) -> Result<(Vec<Tie>, Tie), Error> {
        let ties = self.sums()?.0.ties();
        let sum = |of: fn(&Tie) -> f64| ties.iter().map(of).sum();
        let all = Tie { negative: sum(|tie| tie.negative), positive: sum(|tie| tie.positive) };
        Ok((ties, all))
    }
}

/// Bits that are ordered as the numbers are. Zeros of both signs are the same.
fn ordered_bits(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}
