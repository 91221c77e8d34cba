//! Predictions in two passes: all rows by a model, then the least confident ones by a more expensive module.

use brisk_loader::{Rows, Subset};
use brisk_nn::Module;
use brisk_nn::tensor::program::kernels::Interval;

use crate::error::Error;
use crate::model::{Model, Scores};
use crate::rows::FeedRows;
use crate::rows::inspect::failed;
use crate::task::{Labels, Task, read_labels};

/// The result of two passes, and the rows of the second.
#[derive(Debug, Clone, PartialEq)]
pub struct Selective<T> {
    /// The result.
    pub result: T,
    /// The rows of the second pass, in ascending order.
    pub careful_rows: Vec<u32>,
}

/// The least confident rows of a classifier, in ascending order: the fraction `share` of all rows, rounded to the nearest number.
///
/// The confidence of a row is the probability of its predicted class: the largest of the softmax of its logits, or that of the
/// sigmoid for a single logit. Of rows with equal confidence the first are taken. Rows with NaN are the least confident.
///
/// # Shapes
/// `logits`: `[n_rows, n_outputs]`, row-major.
/// # Errors
/// [`Error::Setting`] if `share` is not between 0 and 1; [`Error::Tensor`] if the logits are not those of whole rows.
///
/// # Examples
/// ```
/// let logits = [4.0, 0.0, 1.0, 0.9, 0.0, 3.0, 0.2, 0.0];
/// assert_eq!(brisk_train::least_confident(&logits, 2, 0.5)?, [1, 3]);
/// # Ok::<(), brisk_train::Error>(())
/// ```
pub fn least_confident(logits: &[f32], n_outputs: usize, share: f64) -> Result<Vec<u32>, Error> {
    Interval::Unit.check("share", share)?;
    if n_outputs == 0 || !logits.len().is_multiple_of(n_outputs) {
        let expected = format!("[n_rows, {n_outputs}], whole rows of at least one logit");
        let error = brisk_nn::Error::Shape { op: "least_confident", arg: "logits", expected, found: vec![logits.len()] };
        return Err(Error::Tensor(error));
    }
    let doubts: Vec<f64> = logits.chunks_exact(n_outputs).map(doubt).collect();
    let mut rows: Vec<u32> = (0..doubts.len() as u32).collect();
    // The sort is stable, so equal rows stay in their order.
    rows.sort_by(|&a, &b| doubts[b as usize].total_cmp(&doubts[a as usize]));
    rows.truncate((share * doubts.len() as f64).round() as usize);
    rows.sort_unstable();
    Ok(rows)
}

/// `1 / p - 1` for the probability `p` of the predicted class: the other classes' `e^(l - max)`. Unlike `p`, it distinguishes
/// rows of which a model is nearly certain.
fn doubt(logits: &[f32]) -> f64 {
    let doubt = match *logits {
        [logit] => (-f64::from(logit).abs()).exp(),
        _ => {
            let max = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let n_largest = logits.iter().filter(|&&logit| logit == max).count();
            let others = logits.iter().filter(|&&logit| logit != max);
            // Without the 1 of the largest, next to which small numbers would be lost.
            n_largest as f64 - 1.0 + others.map(|&logit| (f64::from(logit) - f64::from(max)).exp()).sum::<f64>()
        }
    };
    if doubt.is_nan() { f64::INFINITY } else { doubt }
}

impl<M: Module> Model<M> {
    /// As [`predict`](Self::predict), but the [least confident](least_confident) rows, a fraction `share` of them, are predicted
    /// again by `careful`: a module over the same parameters that takes longer, such as one that averages outputs over several
    /// views of an image.
    ///
    /// # Errors
    /// [`Error::Setting`] if `share` is not between 0 and 1; [`Error::Tensor`] if `careful` has a different number of outputs; as
    /// [`predict`](Self::predict).
    #[track_caller]
    pub fn predict_selectively<S: FeedRows>(
        &self,
        rows: &S,
        careful: &dyn Module,
        share: f64,
    ) -> Result<Selective<Vec<f32>>, Error> {
        Interval::Unit.check("share", share)?;
        let mut outputs = self.predict(rows)?;
        let n_outputs = outputs.len() / rows.n_rows();
        let careful_rows = least_confident(&outputs, n_outputs, share)?;
        if careful_rows.is_empty() {
            return Ok(Selective { result: outputs, careful_rows });
        }
        let subset = Subset::of_rows(rows, careful_rows.as_slice()).map_err(|error| failed("test", &error))?;
        let found = self.outputs_of(careful, &subset, None)?.outputs;
        if found.len() != careful_rows.len() * n_outputs {
            let expected = format!("[{}, {n_outputs}], as many columns as the model itself", careful_rows.len());
            let found = vec![careful_rows.len(), found.len() / careful_rows.len()];
            let error = brisk_nn::Error::Shape { op: "predict_selectively", arg: "the careful module's output", expected, found };
            return Err(Error::Tensor(error));
        }
        for (&row, found) in careful_rows.iter().zip(found.chunks_exact(n_outputs)) {
            outputs[row as usize * n_outputs..][..n_outputs].copy_from_slice(found);
        }
        Ok(Selective { result: outputs, careful_rows })
    }

    /// The loss and the metrics of `task`, a classification, for what [`predict_selectively`](Self::predict_selectively) returns.
    ///
    /// Test-time augmentation then takes several views of the least confident images only, which they are most likely to change.
    ///
    /// # Errors
    /// As [`predict_selectively`](Self::predict_selectively) and [`evaluate`](Self::evaluate); [`Error::Setting`] for a task
    /// whose rows are not of one class each.
    ///
    /// # Examples
    /// A module that takes the mean of two passes, the second over rows with their columns reversed:
    /// ```
    /// use brisk_loader::Rows;
    /// use brisk_nn::tensor::Tensor;
    /// use brisk_nn::{Activation, Bound, Linear, Module};
    /// use brisk_train::{Classification, Model};
    ///
    /// #[derive(Debug, Clone)]
    /// struct BothWays(Linear);
    ///
    /// impl Module for BothWays {
    ///     fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
    ///         let reversed = x.index_select(1, &[1, 0]);
    ///         (self.0.forward(params, x) + self.0.forward(params, &reversed)) * 0.5
    ///     }
    /// }
    ///
    /// let model = Model::new(7, |params| Linear::new(params, "head", 2, 3, Activation::identity()));
    /// let rows = Rows::new(vec![0.5, 1.0, -1.0, 2.0, 0.0, 0.25, 3.0, 1.0], vec![0.0, 1.0, 2.0, 1.0], 2)?;
    /// let careful = BothWays(model.module().clone());
    /// let scores = model.evaluate_selectively(&Classification::of(3), &rows, &careful, 0.25)?;
    /// assert_eq!(scores.careful_rows.len(), 1);
    /// assert!(scores.result.get("accuracy").is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn evaluate_selectively<S: FeedRows>(
        &self,
        task: &dyn Task,
        rows: &S,
        careful: &dyn Module,
        share: f64,
    ) -> Result<Selective<Scores>, Error> {
        let is_classification = task.n_labels() == 1 && !matches!(task.labels(), Labels::Numbers | Labels::Mixed);
        if !is_classification {
            let expected = "one whose rows each have one label that is a class, since other predictions have no confidence";
            return Err(Error::setting("task", format!("{task:?}"), expected));
        }
        let labels = read_labels(&task.label_kinds(), "test", rows)?;
        let Selective { result: outputs, careful_rows } = self.predict_selectively(rows, careful, share)?;
        let loss =
            if outputs.iter().all(|output| output.is_finite()) { self.loss_of(task, &outputs, &labels)? } else { Some(f64::NAN) };
        Ok(Selective { result: Scores::of(task, &outputs, &labels, loss)?, careful_rows })
    }

    /// The loss of outputs on the host: that of a model that returns its input.
    #[track_caller]
    fn loss_of(&self, task: &dyn Task, outputs: &[f32], labels: &[f32]) -> Result<Option<f64>, Error> {
        let rows = Rows::new(outputs, labels, outputs.len() / labels.len().max(1)).map_err(|error| failed("test", &error))?;
        let identity = self.identity();
        Ok(identity.outputs_of(identity.module(), &rows, Some(task))?.loss)
    }
}
