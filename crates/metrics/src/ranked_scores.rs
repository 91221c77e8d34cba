//! The scores of a binary or multi-label classification, collected until all are known and then sorted.

use crate::error::Error;
use crate::scored::Scored;
use rayon::prelude::*;

use crate::tally::{Sums, Tally, Target};

/// Rows in their original order. A key has a score's order in its upper bits and the label in its lowest bit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    keys: Vec<u64>,
    /// Of the same length, or empty if all rows weigh 1.
    weights: Vec<f64>,
}

/// The weights of rows of one score.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tie {
    pub(crate) negative: f64,
    pub(crate) positive: f64,
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

    /// The ties from the lowest score to the highest, and the weights of all rows.
    pub(crate) fn ranked(&self) -> (Vec<Tie>, Tie) {
        let ties = self.ties();
        let sum = |of: fn(&Tie) -> f64| ties.iter().map(of).sum();
        let all = Tie { negative: sum(|tie| tie.negative), positive: sum(|tie| tie.positive) };
        (ties, all)
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

/// The scores of a metric that ranks rows, for each label of a row.
pub(crate) type RankedScores = Tally<Vec<Keys>>;

impl RankedScores {
    /// Adds rows of a binary classification.
    pub(crate) fn push(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        self.push_as(rows, Target::binary(self.metric(), rows)?)
    }

    /// Adds rows of a binary or multi-label classification.
    pub(crate) fn push_columns(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
        self.push_as(rows, Target::binary_or_labels(self.metric(), rows)?)
    }

    fn push_as(&mut self, rows: &Scored<'_>, target: Target) -> Result<(), Error> {
        self.update(rows, target, vec![Keys::default(); rows.n_labels], |columns, row| {
            for ((keys, &output), &label) in columns.iter_mut().zip(row.outputs).zip(row.labels) {
                keys.push(u64::from(ordered_bits(output)) << 1 | u64::from(label > 0.0), row.weight);
            }
        })
    }

    /// The ties from the lowest score to the highest, and the weights of all rows, of a binary classification.
    pub(crate) fn ranked(&self) -> Result<(Vec<Tie>, Tie), Error> {
        Ok(self.columns()?.first().map_or_else(|| (Vec::new(), Tie { negative: 0.0, positive: 0.0 }), Keys::ranked))
    }

    /// The same of rows of which some are labelled 1.
    pub(crate) fn ranked_with_positive(&self) -> Result<(Vec<Tie>, Tie), Error> {
        let (ties, all) = self.ranked()?;
        if all.positive == 0.0 {
            let (metric, n_rows, n_ignored) = (self.metric(), self.n_counted(), self.n_ignored());
            return Err(Error::NoPositiveLabel { metric, n_rows, n_ignored });
        }
        Ok((ties, all))
    }

    /// The error for rows, or a label of rows with several, of one class only.
    pub(crate) fn one_class(&self, all: Tie, label: Option<usize>) -> Error {
        let class = u8::from(all.negative == 0.0);
        Error::OneClass { n_rows: self.n_counted(), n_ignored: self.n_ignored(), class, label }
    }

    /// The scores for each label of a row.
    pub(crate) fn columns(&self) -> Result<&[Keys], Error> {
        Ok(self.sums()?.0)
    }
}

/// Bits that are ordered as the numbers are. Zeros of both signs are the same.
fn ordered_bits(score: f32) -> u32 {
    let bits = (score + 0.0).to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}
