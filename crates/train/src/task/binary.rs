use brisk_metrics::{Accuracy, LogLoss, Metric, RocAuc};
use brisk_nn::tensor::Tensor;
use brisk_nn::tensor::program::kernels::Interval;

use super::{LabelledRows, Labels, Task};
use crate::error::Error;

/// Two classes: the model returns a logit for each row, labels are 0 or 1. Trained by binary cross-entropy, evaluated by the area
/// under the ROC curve (watched), accuracy and log loss.
///
/// # Examples
/// ```
/// use brisk_train::Binary;
///
/// // One row in ten is of class 1: its loss counts nine times.
/// let task = Binary::new().pos_weight(9.0);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Binary {
    pos_weight: f32,
    label_smoothing: f32,
}

impl Default for Binary {
    fn default() -> Self {
        Self::new()
    }
}

impl Binary {
    /// Both classes count alike, and labels are taken as they are.
    pub fn new() -> Self {
        Self { pos_weight: 1.0, label_smoothing: 0.0 }
    }

    /// Multiplies the loss of rows of class 1, as PyTorch's `BCEWithLogitsLoss(pos_weight=…)`.
    pub fn pos_weight(mut self, weight: f32) -> Self {
        self.pos_weight = weight;
        self
    }

    /// Trains towards `smoothing / 2` and `1 - smoothing / 2` instead of 0 and 1.
    pub fn label_smoothing(mut self, smoothing: f32) -> Self {
        self.label_smoothing = smoothing;
        self
    }
}

impl Task for Binary {
    fn labels(&self) -> Labels {
        Labels::Binary
    }

    fn check(&self) -> Result<(), Error> {
        Interval::NonNegative.check("pos_weight", self.pos_weight)?;
        Ok(Interval::Unit.check("label_smoothing", self.label_smoothing)?)
    }

    fn n_outputs(&self) -> usize {
        1
    }

    #[track_caller]
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let targets = match self.label_smoothing {
            0.0 => rows.labels.clone(),
            smoothing => &rows.labels * (1.0 - smoothing) + 0.5 * smoothing,
        };
        outputs.bce_with_logits(&targets, &rows.weights, rows.reduction, self.pos_weight)
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        vec![Box::new(RocAuc::default()), Box::new(Accuracy::default()), Box::new(LogLoss::default())]
    }

    fn watched(&self) -> &str {
        "auc"
    }
}
