use crate::calibration::Calibration;
use crate::intervals::Intervals;
use crate::reading::shortest;
use crate::target::Target;
use crate::threshold::{Threshold, sigmoid};

/// The predictions of a [`TabularPredictor`](crate::TabularPredictor) for rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    target: Target,
    /// Class numbers, or numbers.
    numbers: Vec<f64>,
    /// `[n_rows, n_classes]`; empty for numbers.
    probabilities: Vec<f32>,
    /// `[n_rows, 2]`; empty without intervals.
    intervals: Vec<[f64; 2]>,
}

impl Predictions {
    /// From the model's output for each row: logits, or standardised numbers.
    pub(super) fn new(
        target: &Target,
        calibration: Option<&Calibration>,
        threshold: Option<Threshold>,
        intervals: Option<Intervals>,
        mut outputs: Vec<f32>,
    ) -> Self {
        target.restore(&mut outputs);
        calibration.iter().for_each(|calibration| calibration.apply(&mut outputs));
        let (numbers, probabilities) = match target.classes().len() {
            0 => (outputs.into_iter().map(|output| f64::from(output) + target.offset()).collect::<Vec<_>>(), Vec::new()),
            2 => {
                // Both are computed from the logit, so that neither loses digits when it is close to 0.
                let probabilities = outputs.iter().flat_map(|&logit| [sigmoid(-logit), sigmoid(logit)]).collect();
                let is_second = |&logit: &f32| threshold.map_or(logit > 0.0, |threshold| sigmoid(logit) > threshold.value);
                (outputs.iter().map(|logit| f64::from(u8::from(is_second(logit)))).collect(), probabilities)
            }
            n_classes => {
                outputs.chunks_exact_mut(n_classes).for_each(softmax);
                (outputs.chunks_exact(n_classes).map(|row| largest(row) as f64).collect(), outputs)
            }
        };
        let of_number = |intervals: &Intervals| numbers.iter().map(|&number| intervals.around(target, number)).collect();
        let intervals = intervals.as_ref().map_or_else(Vec::new, of_number);
        Self { target: target.clone(), numbers, probabilities, intervals }
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.numbers.len()
    }

    /// The predicted number of each row, in the units of the target, of which `f32` may have too few digits; for classes the
    /// number of the most probable one, from 0, or of two the one that the model's [threshold](crate::Threshold) decides for.
    pub fn numbers(&self) -> &[f64] {
        &self.numbers
    }

    /// The predicted number of a row, in few digits: those of `f32`, if it is one.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn number_text(&self, row: usize) -> String {
        shortest(self.numbers[row])
    }

    /// The lower and the upper bound of each row's number, in the units of the target; empty unless the model has
    /// [intervals](crate::TabularModel::intervals).
    pub fn intervals(&self) -> &[[f64; 2]] {
        &self.intervals
    }

    /// Whether `f32` holds the numbers, as it does unless the target is [shifted](Target::offset).
    pub fn are_f32(&self) -> bool {
        self.target.offset() == 0.0
    }

    /// The probability of each class, `[n_rows, n_classes]`, row-major; empty if the target is a number.
    pub fn probabilities(&self) -> &[f32] {
        &self.probabilities
    }

    /// The calibrated output of a network that they are predictions of: logits, or numbers in the units of labels.
    pub(super) fn outputs(&self) -> Vec<f32> {
        // A probability of 0 is one that `f32` does not have.
        let log = |probability: f32| probability.max(f32::MIN_POSITIVE).ln();
        match self.target.classes().len() {
            0 => self.numbers.iter().map(|number| (number - self.target.offset()) as f32).collect(),
            2 => self.probabilities.chunks_exact(2).map(|of| log(of[1]) - log(of[0])).collect(),
            _ => self.probabilities.iter().map(|&probability| log(probability)).collect(),
        }
    }

    /// The names of the classes; none if the target is a number.
    pub fn classes(&self) -> &[String] {
        self.target.classes()
    }

    /// The name of the predicted class of a row; `None` if the target is a number.
    ///
    /// # Panics
    /// If there are fewer rows.
    pub fn class(&self, row: usize) -> Option<&str> {
        let number = self.numbers[row];
        self.classes().get(number as usize).map(String::as_str)
    }
}

/// The first of the largest numbers.
fn largest(row: &[f32]) -> usize {
    (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best })
}

pub(super) fn softmax(row: &mut [f32]) {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    row.iter_mut().for_each(|x| *x = (*x - max).exp());
    let sum: f32 = row.iter().sum();
    row.iter_mut().for_each(|x| *x /= sum);
}
