use brisk_metrics::{Average, F1, LogLoss, Metric, RocAuc, SubsetAccuracy};
use brisk_nn::tensor::{AutocastRule, ElementwiseOperation, Expr, Tensor};

use super::{LabelledRows, Labels, Task, check_weights};
use crate::error::Error;

/// Several labels per row, each 0 or 1, of which any number may be 1: the model returns a logit for each label. Trained by the
/// mean of the binary cross-entropies of a row's labels, as PyTorch's `BCEWithLogitsLoss`. Evaluated by the mean of the labels'
/// areas under the ROC curve (watched), subset accuracy, macro and micro F1, and log loss.
///
/// # Examples
/// Whether a point is to the right of the origin, and whether it is above it:
/// ```
/// use brisk_loader::Rows;
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::{Activation, Linear, Schedule};
/// use brisk_train::{Model, MultiLabel, Trainer};
///
/// let points: Vec<f32> = (0..400).map(|i| (i * 7919 % 401) as f32 / 200.0 - 1.0).collect();
/// let labels: Vec<f32> = points.iter().map(|&x| f32::from(u8::from(x > 0.0))).collect();
/// let rows = Rows::with_label_columns(points, labels, 2, 2)?;
///
/// let task = MultiLabel::of(2);
/// let mut model = Model::new(7, |params| Linear::new(params, "line", 2, 2, Activation::identity()));
/// let mut trainer = Trainer::new(&Device::cpu()?).batch_rows(20).max_epochs(20).schedule(Schedule::constant(0.05));
/// trainer.fit(&mut model, &task, &rows, &rows)?;
/// let scores = model.evaluate(&task, &rows)?;
/// assert!(scores.get("auc") > Some(0.99), "{scores}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct MultiLabel {
    n_labels: usize,
    pos_weight: Option<Vec<f32>>,
    has_auc: bool,
}

impl MultiLabel {
    /// `n_labels` labels per row, which count alike.
    pub fn of(n_labels: usize) -> Self {
        Self { n_labels, pos_weight: None, has_auc: true }
    }

    /// Multiplies the loss of each label where it is 1: one weight per label, as PyTorch's `BCEWithLogitsLoss(pos_weight=…)`.
    pub fn pos_weight(mut self, weights: impl Into<Vec<f32>>) -> Self {
        self.pos_weight = Some(weights.into());
        self
    }

    /// Leaves out the area under the ROC curve, which does not exist where a label is the same in all validation rows. The log
    /// loss is watched instead.
    pub fn without_auc(mut self) -> Self {
        self.has_auc = false;
        self
    }
}

impl Task for MultiLabel {
    fn labels(&self) -> Labels {
        Labels::Binary
    }

    fn n_labels(&self) -> usize {
        self.n_labels
    }

    fn check(&self) -> Result<(), Error> {
        if self.n_labels == 0 {
            return Err(Error::setting("n_labels", "0", "at least 1 label"));
        }
        let weights = self.pos_weight.as_ref();
        weights.map_or(Ok(()), |weights| check_weights("pos_weight", weights, self.n_labels, "one weight per label"))
    }

    fn n_outputs(&self) -> usize {
        self.n_labels
    }

    #[track_caller]
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let graph = outputs.graph();
        let labels = rows.labels.reshape(outputs.shape());
        let [x, y, pos_weight] = [0, 1, 2].map(Expr::input);
        // -ln sigmoid(x), without overflow.
        let log_loss = (-x.clone()).relu() + (-x.abs()).exp().log1p();
        let losses = match &self.pos_weight {
            None => {
                let (loss, slope) = ((1.0 - &y) * &x + log_loss, x.sigmoid() - &y);
                let loss = ElementwiseOperation::new("bce_with_logits", loss).with_derivative(0, slope);
                graph.apply(loss.with_autocast_rule(AutocastRule::Full), &[outputs, &labels])
            }
            Some(weights) => {
                let weights = graph.constant("pos_weight", weights, &[weights.len()]);
                let factor = 1.0 + (pos_weight - 1.0) * &y;
                let slope = (1.0 - &y) - &factor * (1.0 - x.sigmoid());
                let loss =
                    ElementwiseOperation::new("bce_with_logits", (1.0 - &y) * &x + factor * log_loss).with_derivative(0, slope);
                graph.apply(loss.with_autocast_rule(AutocastRule::Full), &[outputs, &labels, &weights])
            }
        };
        rows.reduce(&losses)
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        let mut metrics: Vec<Box<dyn Metric>> = Vec::new();
        if self.has_auc {
            metrics.push(Box::new(RocAuc::default()));
        }
        metrics.push(Box::new(SubsetAccuracy::default()));
        metrics.push(Box::new(F1::new(Average::Macro)));
        metrics.push(Box::new(F1::new(Average::Micro)));
        metrics.push(Box::new(LogLoss::default()));
        metrics
    }

    fn watched(&self) -> &str {
        if self.has_auc { "auc" } else { "log_loss" }
    }
}
