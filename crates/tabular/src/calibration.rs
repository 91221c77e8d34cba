use serde::{Deserialize, Serialize};

use crate::mean::weighted_mean;
use crate::number_calibration::NumberCalibration;
use crate::validated::Validated;

/// What makes predictions those that are observed, fitted to validation rows. In the folder of a model `kind` says which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Calibration {
    /// Of the probabilities of classes.
    Classes(ClassCalibration),
    /// Of a number.
    Number(NumberCalibration),
}

impl Calibration {
    /// That of classes.
    pub fn classes(&self) -> Option<&ClassCalibration> {
        match self {
            Self::Classes(calibration) => Some(calibration),
            Self::Number(_) => None,
        }
    }

    /// That of a number.
    pub fn number(&self) -> Option<NumberCalibration> {
        match self {
            Self::Classes(_) => None,
            Self::Number(calibration) => Some(*calibration),
        }
    }

    /// Replaces logits by those of the calibrated probabilities, or numbers in the units of the labels by calibrated ones.
    pub(super) fn apply(&self, outputs: &mut [f32]) {
        match self {
            Self::Classes(calibration) => calibration.apply(outputs),
            Self::Number(calibration) => calibration.apply(outputs),
        }
    }
}

/// What makes probabilities of a model those that are observed: a temperature that the logits are divided by, and a share of the
/// frequencies of the classes.
///
/// # Reference
/// Guo, Pleiss, Sun & Weinberger 2017, *On Calibration of Modern Neural Networks*, arXiv:1706.04599.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassCalibration {
    /// The logits are divided by it: above 1 for a model that is too sure.
    pub temperature: f32,
    /// How much of a probability is the frequency of the class: 0, unless a temperature by itself leaves the log loss of
    /// validation rows worse than that of the frequencies.
    pub constant_share: f32,
    /// The frequency of each class among the training rows, by their weights.
    pub frequencies: Vec<f32>,
    /// Added to the logit of each class after that: 0, unless the classes had [weights](crate::ClassWeights) in the loss, which
    /// these numbers undo.
    pub shifts: Vec<f32>,
}

/// The temperatures that are considered, by their logarithms.
const LOG_TEMPERATURES: [f64; 2] = [-3.0, 3.0];

/// The deviation of their logarithms before any row is seen.
const LOG_DEVIATION: f64 = 0.5;

impl ClassCalibration {
    /// The calibration with the lowest log loss for rows whose outputs are the logit of the second of two classes or one of each
    /// class, and whose labels are the numbers of the classes, of a network that was trained with such weights of the classes.
    pub(super) fn fit(rows: &Validated, frequencies: Vec<f32>, class_weights: Option<&[f32]>) -> Self {
        let shifts =
            class_weights.map_or_else(|| vec![0.0; frequencies.len()], |of| of.iter().map(|weight| -weight.ln()).collect());
        let of = |temperature: f64, share: f64| Self {
            temperature: temperature as f32,
            constant_share: share as f32,
            frequencies: frequencies.clone(),
            shifts: shifts.clone(),
        };
        // Few rows, all of which are predicted right, do not show that the model may be as sure as can be.
        let prior = |log: f64| (log / LOG_DEVIATION).powi(2) / 2.0 / rows.labels.len() as f64;
        let log_temperature = minimum(LOG_TEMPERATURES, |log| of(log.exp(), 0.0).log_loss(rows) + prior(log));
        let [uncalibrated, scaled] = [of(1.0, 0.0), of(log_temperature.exp(), 0.0)];
        let best = if scaled.log_loss(rows) < uncalibrated.log_loss(rows) { scaled } else { uncalibrated };
        let constant = of(1.0, 1.0);
        if best.log_loss(rows) <= constant.log_loss(rows) {
            return best;
        }
        let temperature = f64::from(best.temperature);
        let share = minimum([0.0, 1.0], |share| of(temperature, share).log_loss(rows));
        let blended = of(temperature, share);
        if blended.log_loss(rows) < constant.log_loss(rows) { blended } else { constant }
    }

    /// The mean log loss of rows; infinite for outputs that are not finite.
    pub(super) fn log_loss(&self, rows: &Validated) -> f64 {
        let mut calibrated = rows.outputs.clone();
        self.apply(&mut calibrated);
        log_loss(&calibrated, &rows.labels, rows.weights.as_deref())
    }

    /// Replaces logits by those of the calibrated probabilities.
    pub(super) fn apply(&self, outputs: &mut [f32]) {
        match &self.shifts[..] {
            &[no, yes] => outputs.iter_mut().for_each(|output| *output = *output / self.temperature + (yes - no)),
            shifts => {
                outputs
                    .iter_mut()
                    .zip(shifts.iter().cycle())
                    .for_each(|(output, shift)| *output = *output / self.temperature + shift);
            }
        }
        let share = f64::from(self.constant_share);
        if share == 0.0 {
            return;
        }
        let frequencies: Vec<f64> = self.frequencies.iter().map(|&frequency| f64::from(frequency)).collect();
        let blended = |log_probability: f64, class: usize| -> f64 {
            // Without the product, so that a share of 1 is the frequency whatever the model says.
            let own = if share == 1.0 { 0.0 } else { (1.0 - share) * log_probability.exp() };
            (own + share * frequencies[class]).ln()
        };
        match frequencies.len() {
            2 => outputs.iter_mut().for_each(|output| {
                let logit = f64::from(*output);
                *output = (blended(-softplus(-logit), 1) - blended(-softplus(logit), 0)) as f32;
            }),
            n_classes => outputs.chunks_exact_mut(n_classes).for_each(|row| {
                let all = log_sum_exp(row);
                row.iter_mut().enumerate().for_each(|(class, x)| *x = blended(f64::from(*x) - all, class) as f32);
            }),
        }
    }
}

/// The mean log loss of rows with these logits; infinite for logits that are not finite.
pub(super) fn log_loss(logits: &[f32], labels: &[f32], weights: Option<&[f32]>) -> f64 {
    let mean = weighted_mean(log_losses(logits, labels), weights);
    if mean.is_nan() { f64::INFINITY } else { mean }
}

/// The log loss of each row.
pub(super) fn log_losses(logits: &[f32], labels: &[f32]) -> impl Iterator<Item = f64> {
    let n_outputs = (logits.len() / labels.len().max(1)).max(1);
    logits.chunks_exact(n_outputs).zip(labels).map(move |(row, &label)| {
        if n_outputs == 1 {
            let logit = f64::from(row[0]);
            return softplus(if label > 0.5 { -logit } else { logit });
        }
        log_sum_exp(row) - f64::from(row[label as usize])
    })
}

/// `ln(1 + exp(x))`.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn log_sum_exp(row: &[f32]) -> f64 {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    f64::from(max) + row.iter().map(|&x| f64::from(x - max).exp()).sum::<f64>().ln()
}

/// Where a function with one minimum has it, by golden sections.
fn minimum([mut low, mut high]: [f64; 2], f: impl Fn(f64) -> f64) -> f64 {
    const SECTION: f64 = 0.618_033_988_749_895;
    let [mut a, mut b] = [high - SECTION * (high - low), low + SECTION * (high - low)];
    let [mut of_a, mut of_b] = [f(a), f(b)];
    while high - low > 1e-3 {
        if of_a <= of_b {
            (high, b, of_b) = (b, a, of_a);
            a = high - SECTION * (high - low);
            of_a = f(a);
        } else {
            (low, a, of_a) = (a, b, of_b);
            b = low + SECTION * (high - low);
            of_b = f(b);
        }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of two classes whose log odds are ±2, 88 % of them right.
    fn rows(scale: f32) -> Validated {
        let outputs = (0..1000).map(|row| if row % 2 == 0 { 2.0 * scale } else { -2.0 * scale }).collect();
        let labels = (0..1000).map(|row| f32::from(u8::from((row % 2 == 0) == (row % 25 < 22)))).collect();
        of(outputs, labels)
    }

    fn of(outputs: Vec<f32>, labels: Vec<f32>) -> Validated {
        Validated { outputs, labels, weights: None }
    }

    #[test]
    fn a_model_that_is_too_sure_is_cooled() {
        for scale in [0.5, 1.0, 4.0] {
            let calibration = ClassCalibration::fit(&rows(scale), vec![0.5, 0.5], None);
            // The prior moves it by up to 1.1 % for 1000 rows.
            assert!((calibration.temperature / scale - 1.0).abs() < 0.02, "{scale}: {calibration:?}");
            assert_eq!(calibration.constant_share, 0.0);
        }
    }

    #[test]
    fn few_rows_that_are_right_do_not_make_a_model_sure() {
        let ten = of([2.0, -2.0].repeat(5), [1.0, 0.0].repeat(5));
        let temperature = ClassCalibration::fit(&ten, vec![0.5, 0.5], None).temperature;
        assert!((0.4..0.9).contains(&temperature), "{temperature}");
    }

    #[test]
    fn two_classes_are_calibrated_as_any_other_number_of_them() {
        let rows = rows(3.0);
        let both: Vec<f32> = rows.outputs.iter().flat_map(|&logit| [7.0, logit + 7.0]).collect();
        for (temperature, constant_share) in [(3.0, 0.0), (2.0, 0.25), (1.0, 1.0)] {
            let calibration =
                ClassCalibration { temperature, constant_share, frequencies: vec![0.3, 0.7], shifts: vec![0.2, -0.1] };
            let one = calibration.log_loss(&rows);
            let padded = ClassCalibration { frequencies: vec![0.3, 0.7, 0.0], shifts: vec![0.2, -0.1, 0.0], ..calibration };
            let with_third: Vec<f32> = both.chunks(2).flat_map(|row| [row[0], row[1], -1e4]).collect();
            let several = padded.log_loss(&of(with_third, rows.labels.clone()));
            assert!((one - several).abs() < 1e-5, "{padded:?}: {one}, {several}");
        }
    }

    #[test]
    fn a_model_without_knowledge_becomes_the_frequencies() {
        let outputs: Vec<f32> = (0..1000).map(|row| (row as f32 * 0.7).sin() * 3.0).collect();
        let labels: Vec<f32> = (0..1000).map(|row| f32::from(u8::from(row % 10 == 0))).collect();
        let rows = of(outputs, labels);
        let calibration = ClassCalibration::fit(&rows, vec![0.9, 0.1], None);
        assert!(calibration.constant_share > 0.9, "{calibration:?}");
        let constant =
            ClassCalibration { temperature: 1.0, constant_share: 1.0, frequencies: vec![0.9, 0.1], shifts: vec![0.0; 2] };
        assert!(calibration.log_loss(&rows) <= constant.log_loss(&rows));
        let broken = of(vec![f32::NAN; 1000], rows.labels);
        assert_eq!(ClassCalibration::fit(&broken, vec![0.9, 0.1], None), constant);
    }

    #[test]
    fn weights_of_classes_are_undone_and_those_of_rows_count() {
        // One row in ten is of the second class; a network that was trained with balanced weights has 0 as its logit.
        let labels: Vec<f32> = (0..1000).map(|row| f32::from(u8::from(row % 10 == 0))).collect();
        let rows = of(vec![0.0; 1000], labels.clone());
        let calibration = ClassCalibration::fit(&rows, vec![0.9, 0.1], Some(&[1.0 / 1.8, 1.0 / 0.2]));
        let mut logits = vec![0.0];
        calibration.apply(&mut logits);
        assert!((1.0 / (1.0 + (-logits[0]).exp()) - 0.1).abs() < 1e-5, "{calibration:?}");
        // By weights, both classes have as many rows: a constant then knows nothing more than the network.
        let weights = Some(labels.iter().map(|&label| if label > 0.5 { 9.0 } else { 1.0 }).collect());
        let weighted = Validated { weights, ..rows };
        let calibration = ClassCalibration::fit(&weighted, vec![0.5, 0.5], None);
        assert!((calibration.log_loss(&weighted) - 2.0_f64.ln()).abs() < 1e-6, "{calibration:?}");
    }
}
