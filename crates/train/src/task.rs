//! What a model learns: the labels it takes, the loss it is trained by, and the metrics it is evaluated by.

mod binary;
mod classification;
mod head_metric;
mod heads;
mod labels;
mod multi_label;
mod regression;

use std::fmt::Debug;

use brisk_metrics::Metric;
use brisk_nn::tensor::program::kernels::Interval;
use brisk_nn::tensor::{DType, Reduction, Tensor};

use crate::error::Error;

pub(crate) use labels::{first_wrong_label, label_error, read_labels};

pub use binary::Binary;
pub use classification::Classification;
pub use heads::{Head, Heads};
pub use labels::Labels;
pub use multi_label::MultiLabel;
pub use regression::Regression;

/// A task that a [`Trainer`](crate::Trainer) trains a model for: [`Binary`], [`Classification`], [`MultiLabel`], [`Regression`],
/// several of them as [`Heads`] of one model, or one of your own. Dyn-compatible.
///
/// # Examples
/// Counts, by the likelihood of a Poisson distribution whose logarithmic rate is the model's output:
/// ```
/// use brisk_nn::tensor::{LossReduction, Tensor};
/// use brisk_train::metrics::{MeanAbsoluteError, Metric};
/// use brisk_train::{LabelledRows, Labels, Task};
///
/// #[derive(Debug)]
/// struct Counts;
///
/// impl Task for Counts {
///     fn labels(&self) -> Labels {
///         Labels::Numbers
///     }
///     fn n_outputs(&self) -> usize {
///         1
///     }
///     fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
///         rows.reduce(&outputs.squeeze(1).poisson_nll_loss(&rows.labels, LossReduction::None))
///     }
///     fn metrics(&self) -> Vec<Box<dyn Metric>> {
///         vec![Box::new(MeanAbsoluteError::default())]
///     }
/// }
/// ```
pub trait Task: Debug {
    /// Which labels the rows must have. They are checked before anything is trained.
    fn labels(&self) -> Labels;

    /// How many labels each row must have: one, unless the task says otherwise. A task that takes none, such as the
    /// reconstruction of the input, trains on rows with any number of labels, or [without](brisk_loader::Rows::without_labels).
    fn n_labels(&self) -> usize {
        1
    }

    /// The kind of each label of a row: all are [`labels`](Self::labels), unless that is [`Labels::Mixed`].
    fn label_kinds(&self) -> Vec<Labels> {
        vec![self.labels(); self.n_labels()]
    }

    /// Checks the task's own settings, such as the weights of classes, before anything is trained or evaluated.
    ///
    /// # Errors
    /// [`Error::Setting`], as a rule.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Columns of the model's output.
    fn n_outputs(&self) -> usize;

    /// Records the loss of a batch: a tensor without dimensions. It must be linear in the weights of rows, which
    /// [mixed rows](crate::BatchTensors::loss), replicas and the padding of a batch rely on; [`LabelledRows::reduce`] is. A loss
    /// that does not read them is refused, as is one that does not follow the [reduction](LabelledRows::reduction).
    ///
    /// # Shapes
    /// `outputs`: `[n, n_outputs]`, what the model returned; of an ensemble that returned `[n_members, n, n_outputs]`, those of
    /// all members one after the other, with as many labels and weights.
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor;

    /// The metrics of an evaluation, in the order in which they are shown. Their names must differ, and none may be `loss`: the
    /// loss is always reported. None by default.
    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        Vec::new()
    }

    /// The metric that says which epoch was the best, and by which a run stops early unless another is chosen: the name of one of
    /// [`metrics`](Self::metrics), or `loss`, as by default.
    fn watched(&self) -> &str {
        "loss"
    }
}

/// The rows of a batch as tensors, for [`Task::loss`].
#[derive(Debug, Clone)]
pub struct LabelledRows {
    /// `[n, n_cols]` f32: the input as the model saw it, standardised and, in training, augmented.
    pub x: Tensor,
    /// `[n, n_categories]` u32, if rows have categories.
    pub categories: Option<Tensor>,
    /// `[n]`, or `[n, n_labels]` for several or none: u32 where the task's labels are [classes](Labels::Classes), else f32.
    pub labels: Tensor,
    /// `[n]` f32: the weight of each row; 0 for the padding of a short last batch.
    pub weights: Tensor,
    /// Whether the loss is the weighted mean over the batch, or the weighted sum: if each of several replicas has some rows of a
    /// batch, their weights are already divided by the sum of all. A loss must follow it, as [`reduce`](Self::reduce) does: with
    /// a mean where the sum is asked for, validation losses are too small by the number of rows of a batch, and with a sum where
    /// the mean is, steps are too large.
    pub reduction: Reduction,
}

impl LabelledRows {
    /// The losses of rows as one number: `Σ w l / Σ w`, or `Σ w l`, as [`reduction`](Self::reduction) says. Where a row has
    /// several losses, `l` is their mean.
    ///
    /// # Shapes
    /// `losses`: `[n]` or `[n, n_labels]`.
    /// # Errors
    /// [`Shape`](brisk_nn::Error::Shape) for any other shape.
    #[track_caller]
    pub fn reduce(&self, losses: &Tensor) -> Tensor {
        let losses = losses.cast(DType::F32);
        let losses = match losses.shape() {
            [_, 1] => losses.squeeze(1),
            [_, _] => losses.mean(1),
            _ => losses,
        };
        let weighted = losses.multiply(&self.weights);
        match self.reduction {
            Reduction::Mean => weighted.sum(..) / self.weights.sum(..),
            Reduction::Sum => weighted.sum(..),
        }
    }

    /// The rows once for each member of an ensemble, whose losses are averaged.
    fn for_each_member(&self, n_members: usize) -> Self {
        let repeated = |x: &Tensor| {
            let (once, repeated) = ([&[1], x.shape()].concat(), [&[n_members], x.shape()].concat());
            let mut flat = x.shape().to_vec();
            flat[0] *= n_members;
            x.cast(DType::F32).reshape(&once).expand(&repeated).reshape(&flat).cast(x.dtype())
        };
        let weights = repeated(&self.weights);
        let weights = match self.reduction {
            Reduction::Mean => weights,
            Reduction::Sum => weights.map(|weight| weight / n_members as f32),
        };
        Self { labels: repeated(&self.labels), weights, ..self.clone() }
    }
}

/// Records the loss of `task`, and refuses one that is not a single number, or in which the weights of the rows do not count.
#[track_caller]
pub(crate) fn record_loss(task: &dyn Task, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
    let n_readers = rows.weights.n_readers();
    let loss = match *outputs.shape() {
        [n_members, n_rows, n_outputs] => {
            task.loss(&outputs.reshape(&[n_members * n_rows, n_outputs]), &rows.for_each_member(n_members))
        }
        _ => task.loss(outputs, rows),
    };
    let expected = if !loss.shape().is_empty() {
        "one number for the batch: the losses of its rows, reduced by `LabelledRows::reduce`"
    } else if !loss.is_failed() && rows.weights.n_readers() == n_readers {
        "one that is weighted by the rows' `weights`, as `LabelledRows::reduce` does; otherwise the padding of a short batch would be trained on"
    } else {
        return loss;
    };
    let found = format!("a loss of shape {:?} from the task {task:?}", loss.shape());
    loss.graph().failed(brisk_nn::Error::Refused { op: "loss", found, expected }, DType::F32, &[])
}

/// Checks one weight for each of `n`.
fn check_weights(name: &'static str, weights: &[f32], n: usize, expected: &'static str) -> Result<(), Error> {
    if weights.len() != n {
        return Err(Error::setting(name, format!("{} weights for {n}", weights.len()), expected));
    }
    weights.iter().try_for_each(|&weight| Interval::NonNegative.check(name, weight))?;
    if weights.iter().all(|&weight| weight == 0.0) {
        return Err(Error::setting(name, format!("{n} weights of 0"), "a weight above 0"));
    }
    Ok(())
}
