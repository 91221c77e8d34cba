use brisk_nn::tensor::{Mode, Tensor};
use brisk_nn::{Bound, MeanOf, Module};

use crate::mean::weighted_mean;
use crate::predictions::softmax;
use crate::validated::Validated;

/// Networks whose prediction is the weighted mean of theirs: [`Network::Ensemble`](crate::Network::Ensemble).
#[derive(Debug)]
pub(super) struct Ensemble {
    pub(super) members: Vec<(f32, Box<dyn Module>)>,
    pub(super) mean_of: MeanOf,
}

/// The logarithm of a probability that all members round to 0.
const LEAST: f32 = 1e-30;

impl Module for Ensemble {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let mean = |of: &dyn Fn(&Tensor) -> Tensor| -> Tensor {
            let mut sum: Option<Tensor> = None;
            for (weight, member) in &self.members {
                let outputs = member.forward(params, x);
                // Outputs of several networks, in graphs for training.
                let outputs = if outputs.shape().len() == 3 { outputs.mean(0) } else { outputs };
                let weight = *weight;
                let weighted = of(&outputs).map(|value| value * weight);
                sum = Some(sum.map_or_else(|| weighted.clone(), |sum| sum.add(&weighted)));
            }
            sum.unwrap_or_else(|| x.clone())
        };
        match self.mean_of {
            _ if x.graph().mode() == Mode::Training => mean(&Tensor::clone),
            MeanOf::Outputs => mean(&Tensor::clone),
            MeanOf::Sigmoids => {
                // The mean of each class on its own, so that neither is rounded to 1.
                let [no, yes] = [-1.0, 1.0].map(|sign| mean(&|outputs: &Tensor| outputs.map(|x| (x * sign).sigmoid())));
                yes.map2(&no, |yes, no| (yes + LEAST).log() - (no + LEAST).log())
            }
            MeanOf::Softmaxes => mean(&|outputs: &Tensor| outputs.softmax(1)).map(|p| (p + LEAST).log()),
        }
    }

    fn n_inputs(&self) -> Option<usize> {
        self.members.iter().find_map(|(_, member)| member.n_inputs())
    }
}

/// The share of each network in the mean that predicts rows best: by the log loss of `n_classes` classes, or by the squared error
/// of numbers if there are none. `outputs` are those of each network for the labels and weights of `rows`.
pub(super) fn selected(outputs: Vec<Vec<f32>>, rows: &Validated, n_classes: usize) -> Vec<f32> {
    let predictions: Vec<Vec<f32>> = outputs.into_iter().map(|outputs| probabilities(outputs, n_classes)).collect();
    let counts = greedy(&predictions, |mean| loss(mean, &rows.labels, rows.weights.as_deref(), n_classes));
    let n_chosen: usize = counts.iter().sum();
    counts.iter().map(|&count| count as f32 / n_chosen as f32).collect()
}

/// What members of an ensemble are averaged as: numbers, or the probabilities of all classes but the first of two.
fn probabilities(mut outputs: Vec<f32>, n_classes: usize) -> Vec<f32> {
    match n_classes {
        0 => {}
        2 => outputs.iter_mut().for_each(|logit| *logit = 1.0 / (1.0 + (-*logit).exp())),
        _ => outputs.chunks_exact_mut(n_classes).for_each(softmax),
    }
    outputs
}

/// The mean squared error or the log loss of such predictions; infinite if it is not a number.
fn loss(predictions: &[f32], labels: &[f32], weights: Option<&[f32]>, n_classes: usize) -> f64 {
    const LEAST: f64 = 1e-7;
    let cost = |p: f32| -f64::from(p).max(LEAST).ln();
    let of_row = |(row, &label): (&[f32], &f32)| match n_classes {
        0 => f64::from(row[0] - label).powi(2),
        2 => cost(if label > 0.5 { row[0] } else { 1.0 - row[0] }),
        _ => cost(row[label as usize]),
    };
    let rows = predictions.chunks_exact(if n_classes > 2 { n_classes } else { 1 });
    let mean = weighted_mean(rows.zip(labels).map(of_row), weights);
    if mean.is_nan() || predictions.iter().any(|p| p.is_nan()) { f64::INFINITY } else { mean }
}

/// How often each of several predictions is part of the mean that is best by `loss`, as greedy selection finds it: it starts from
/// the best one, and adds the one, again or for the first time, that improves the mean most, as long as one does.
///
/// # Reference
/// Caruana, Niculescu-Mizil, Crew & Ksikes 2004, *Ensemble Selection from Libraries of Models*.
fn greedy(predictions: &[Vec<f32>], loss: impl Fn(&[f32]) -> f64) -> Vec<usize> {
    const MOST: usize = 32;
    let mut counts = vec![0; predictions.len()];
    let mut sum = vec![0.0; predictions.first().map_or(0, Vec::len)];
    let mut best_loss = f64::INFINITY;
    for n in 1..=MOST {
        let with = |i: usize| -> Vec<f32> {
            sum.iter().zip(&predictions[i]).map(|(sum, &value)| ((sum + f64::from(value)) / n as f64) as f32).collect()
        };
        let losses: Vec<f64> = (0..predictions.len()).map(|i| loss(&with(i))).collect();
        let Some(best) = (0..losses.len()).filter(|&i| losses[i] < best_loss).min_by(|&a, &b| losses[a].total_cmp(&losses[b]))
        else {
            break;
        };
        best_loss = losses[best];
        counts[best] += 1;
        sum.iter_mut().zip(&predictions[best]).for_each(|(sum, &value)| *sum += f64::from(value));
    }
    if let Some(first) = counts.first_mut().filter(|_| best_loss.is_infinite()) {
        *first = 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_cancel_are_found() {
        let truth = [1.0, 2.0, 3.0];
        let loss = |found: &[f32]| found.iter().zip(truth).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>();
        let off = |by: [f32; 3]| truth.iter().zip(by).map(|(x, by)| x + by).collect::<Vec<f32>>();
        let predictions = [off([9.0, 9.0, 9.0]), off([1.0, -1.0, 0.0]), off([-2.0, 2.0, 0.0])];
        assert_eq!(greedy(&predictions, loss), [0, 2, 1]);
        assert_eq!(greedy(&predictions[..1], loss), [1]);
        assert_eq!(greedy(&[vec![f32::NAN; 3], vec![f32::NAN; 3]], loss), [1, 0]);
    }
}
