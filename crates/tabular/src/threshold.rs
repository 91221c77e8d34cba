use std::fmt;

use serde::{Deserialize, Serialize};

use crate::validated::Validated;

/// The probability of the second of two classes above which that class is predicted, instead of 0.5.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// What it was chosen for.
    pub metric: ThresholdMetric,
    /// The probability, from 0 to 1.
    pub value: f32,
}

/// What a [`Threshold`] is chosen for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ThresholdMetric {
    /// The harmonic mean of precision and recall of the second class.
    F1,
    /// The share of rows that are predicted right.
    Accuracy,
    /// The mean over both classes of the share of their rows that are predicted right.
    BalancedAccuracy,
}

impl fmt::Display for ThresholdMetric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F1 => "f1",
            Self::Accuracy => "accuracy",
            Self::BalancedAccuracy => "balanced accuracy",
        })
    }
}

/// The probability of the second class.
pub(super) fn sigmoid(logit: f32) -> f32 {
    1.0 / (1.0 + (-logit).exp())
}

/// The weights of rows of the first and of the second class.
type Counts = [f64; 2];

impl ThresholdMetric {
    /// The score for rows of which `predicted` are predicted to be of the second class.
    fn of(self, predicted: Counts, all: Counts) -> f64 {
        let ([false_yes, yes], share) = (predicted, |part: f64, whole: f64| if whole > 0.0 { part / whole } else { 0.0 });
        let no = all[0] - false_yes;
        match self {
            Self::F1 => share(2.0 * yes, yes + false_yes + all[1]),
            Self::Accuracy => share(yes + no, all[0] + all[1]),
            Self::BalancedAccuracy => f64::midpoint(share(no, all[0]), share(yes, all[1])),
        }
    }

    /// The score at a threshold for rows with calibrated logits.
    pub(super) fn score(self, rows: &Validated, threshold: f32) -> f64 {
        let (mut predicted, mut all) = ([0.0; 2], [0.0; 2]);
        for (probability, class, weight) in counted(rows) {
            all[class] += weight;
            predicted[class] += if probability > threshold { weight } else { 0.0 };
        }
        self.of(predicted, all)
    }
}

/// The probability of the second class, the class and the weight of each row.
fn counted(rows: &Validated) -> impl Iterator<Item = (f32, usize, f64)> {
    let outputs = rows.outputs.iter().zip(&rows.labels).enumerate();
    outputs.map(|(row, (&logit, &label))| (sigmoid(logit), usize::from(label > 0.5), rows.weight(row)))
}

impl Threshold {
    /// The threshold with the highest score for rows with calibrated logits; of several the one that is closest to 0.5.
    pub(super) fn fit(metric: ThresholdMetric, rows: &Validated) -> Self {
        let mut sorted: Vec<(f32, usize, f64)> = counted(rows).collect();
        sorted.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let mut all = [0.0; 2];
        sorted.iter().for_each(|&(_, class, weight)| all[class] += weight);
        let mut best = (metric.score(rows, HALF), HALF);
        let mut predicted = [0.0; 2];
        // Between each two probabilities, above the highest and below the lowest.
        let mut above = 1.0;
        for same in sorted.chunk_by(|a, b| a.0 == b.0).chain([&[(0.0, 0, 0.0)][..]]) {
            let below = same[0].0;
            if below < above {
                let (score, value) = (metric.of(predicted, all), between(below, above));
                let is_closer = (value - HALF).abs() < (best.1 - HALF).abs();
                if score > best.0 || (score == best.0 && is_closer) {
                    best = (score, value);
                }
            }
            same.iter().for_each(|&(_, class, weight)| predicted[class] += weight);
            above = below;
        }
        Self { metric, value: best.1 }
    }
}

const HALF: f32 = 0.5;

/// A threshold that `above` is above of, but `below` is not.
fn between(below: f32, above: f32) -> f32 {
    if below <= HALF && HALF < above {
        return HALF;
    }
    let middle = f32::midpoint(below, above);
    if middle < above { middle } else { below }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(f32, f32)], weights: Option<Vec<f32>>) -> Validated {
        let logit = |p: f32| (p / (1.0 - p)).ln();
        let outputs = rows.iter().map(|&(p, _)| logit(p)).collect();
        Validated { outputs, labels: rows.iter().map(|&(_, label)| label).collect(), weights }
    }

    #[test]
    fn the_threshold_with_the_best_score_is_found() {
        let few = [(0.1, 0.0), (0.2, 0.0), (0.3, 1.0), (0.35, 0.0), (0.45, 1.0), (0.48, 1.0)];
        let of = |metric, weights: Option<Vec<f32>>| {
            let rows = rows(&few, weights);
            let Threshold { value, .. } = Threshold::fit(metric, &rows);
            let score = metric.score(&rows, value);
            let best = (0..=1000).map(|i| metric.score(&rows, i as f32 / 1000.0)).fold(0.0, f64::max);
            assert_eq!(score, best, "{metric}");
            (value, score)
        };
        // Predicted are 0.3 and above: 3 of 4 are right, and all are found.
        let (value, score) = of(ThresholdMetric::F1, None);
        assert!((value - 0.25).abs() < 1e-6 && (score - 6.0 / 7.0).abs() < 1e-12, "{value} {score}");
        // 5 of 6 are right above 0.25 and above 0.4, which is closer to 0.5.
        let (value, score) = of(ThresholdMetric::Accuracy, None);
        assert!((value - 0.4).abs() < 1e-6 && (score - 5.0 / 6.0).abs() < 1e-12, "{value} {score}");
        let (value, _) = of(ThresholdMetric::BalancedAccuracy, None);
        assert!((value - 0.4).abs() < 1e-6, "{value}");
        // The row at 0.3 counts more than all others.
        let (value, _) = of(ThresholdMetric::Accuracy, Some(vec![1.0, 1.0, 9.0, 1.0, 1.0, 1.0]));
        assert!((value - 0.25).abs() < 1e-6, "{value}");
    }

    #[test]
    fn a_threshold_that_does_not_matter_is_one_half() {
        let known = rows(&[(0.1, 0.0), (0.9, 1.0)], None);
        for metric in [ThresholdMetric::F1, ThresholdMetric::Accuracy, ThresholdMetric::BalancedAccuracy] {
            assert_eq!(Threshold::fit(metric, &known).value, 0.5);
            let broken = Validated { outputs: vec![f32::NAN; 2], ..rows(&[(0.1, 0.0), (0.9, 1.0)], None) };
            let value = Threshold::fit(metric, &broken).value;
            assert!((0.0..=1.0).contains(&value), "{value}");
        }
    }
}
