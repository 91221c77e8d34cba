use brisk_metrics::{Accuracy, LogLoss, Metric};
use brisk_nn::tensor::program::kernels::Interval;
use brisk_nn::tensor::{CrossEntropyOptions, Tensor};

use super::{LabelledRows, Labels, Task, check_weights};
use crate::error::Error;

/// Several classes, of which each row has one: the model returns a logit for each class, labels are class numbers from 0. Trained
/// by cross-entropy, evaluated by accuracy (watched) and log loss.
///
/// # Examples
/// ```
/// use brisk_train::Classification;
///
/// let letters = Classification::of(26).label_smoothing(0.1);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Classification {
    n_classes: usize,
    label_smoothing: f32,
    class_weights: Option<Vec<f32>>,
}

impl Classification {
    /// `n_classes` classes that count alike.
    pub fn of(n_classes: usize) -> Self {
        Self { n_classes, label_smoothing: 0.0, class_weights: None }
    }

    /// Spreads this fraction of each target over all classes: 0 for none, at most 1.
    pub fn label_smoothing(mut self, smoothing: f32) -> Self {
        self.label_smoothing = smoothing;
        self
    }

    /// Weighs the rows of each class: one weight per class, as PyTorch's `CrossEntropyLoss(weight=…)`. The mean over a batch
    /// divides by the sum of these weights; validation, and training on several replicas, divide by the number of rows.
    pub fn class_weights(mut self, weights: impl Into<Vec<f32>>) -> Self {
        self.class_weights = Some(weights.into());
        self
    }
}

impl Task for Classification {
    fn labels(&self) -> Labels {
        Labels::Classes { n_classes: self.n_classes }
    }

    fn check(&self) -> Result<(), Error> {
        if self.n_classes < 2 {
            return Err(Error::setting("n_classes", self.n_classes.to_string(), "at least 2 classes"));
        }
        Interval::Unit.check("label_smoothing", self.label_smoothing)?;
        let weights = self.class_weights.as_ref();
        weights.map_or(Ok(()), |weights| check_weights("class_weights", weights, self.n_classes, "one weight per class"))
    }

    fn n_outputs(&self) -> usize {
        self.n_classes
    }

    #[track_caller]
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let constant = |weights: &Vec<f32>| outputs.graph().constant("class_weights", weights, &[weights.len()]);
        let class_weight = self.class_weights.as_ref().map(constant);
        let options = CrossEntropyOptions {
            reduction: rows.reduction,
            label_smoothing: self.label_smoothing,
            class_weight: class_weight.as_ref(),
            ignored: None,
        };
        outputs.cross_entropy(&rows.labels, &rows.weights, options)
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        vec![Box::new(Accuracy::default()), Box::new(LogLoss::default())]
    }

    fn watched(&self) -> &str {
        "accuracy"
    }
}
