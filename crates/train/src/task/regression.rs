use brisk_metrics::{MeanAbsoluteError, Metric, PinballLoss, RSquared, RootMeanSquaredError};
use brisk_nn::tensor::program::kernels::Interval;
use brisk_nn::tensor::{LossReduction, Tensor};

use super::{LabelledRows, Labels, Task};
use crate::error::Error;

/// A number for each row, or [several](Self::targets): the model returns as many; labels are finite numbers. Trained by the
/// squared error unless another loss is chosen; evaluated by the root of the mean squared error (watched, except for quantiles),
/// the mean absolute error and R². All of them are means over the targets.
///
/// # Examples
/// ```
/// use brisk_train::Regression;
///
/// // The price that nine out of ten stay below.
/// let task = Regression::quantile(0.9);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regression {
    loss: RegressionLoss,
    n_targets: usize,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum RegressionLoss {
    Squared,
    Absolute,
    Huber { delta: f32 },
    Quantile { quantile: f32 },
}

impl Default for Regression {
    fn default() -> Self {
        Self::mse()
    }
}

impl Regression {
    /// By the squared error: the model learns the mean.
    pub fn mse() -> Self {
        Self::by(RegressionLoss::Squared)
    }

    /// By the absolute error: the model learns the median.
    pub fn l1() -> Self {
        Self::by(RegressionLoss::Absolute)
    }

    /// By the squared error up to `delta`, and the absolute error beyond it, which outliers disturb less.
    pub fn huber(delta: f32) -> Self {
        Self::by(RegressionLoss::Huber { delta })
    }

    /// By the pinball loss: the model learns the value that this fraction of labels is below. Watches that loss.
    pub fn quantile(quantile: f32) -> Self {
        Self::by(RegressionLoss::Quantile { quantile })
    }

    /// Sets how many numbers each row has as labels, and the model returns; 1 by default.
    pub fn targets(mut self, n_targets: usize) -> Self {
        self.n_targets = n_targets;
        self
    }

    fn by(loss: RegressionLoss) -> Self {
        Self { loss, n_targets: 1 }
    }
}

impl Task for Regression {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }

    fn n_labels(&self) -> usize {
        self.n_targets
    }

    fn check(&self) -> Result<(), Error> {
        if self.n_targets == 0 {
            return Err(Error::setting("targets", "0", "at least 1 target"));
        }
        match self.loss {
            RegressionLoss::Huber { delta } => Ok(Interval::Positive.check("delta", delta)?),
            RegressionLoss::Quantile { quantile } => Ok(Interval::Open.check("quantile", quantile)?),
            RegressionLoss::Squared | RegressionLoss::Absolute => Ok(()),
        }
    }

    fn n_outputs(&self) -> usize {
        self.n_targets
    }

    #[track_caller]
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let predictions = outputs.reshape(rows.labels.shape());
        let losses = match self.loss {
            RegressionLoss::Squared => return predictions.mse_loss(&rows.labels, &rows.weights, rows.reduction),
            RegressionLoss::Absolute => predictions.l1_loss(&rows.labels, LossReduction::None),
            RegressionLoss::Huber { delta } => predictions.huber_loss(&rows.labels, delta, LossReduction::None),
            RegressionLoss::Quantile { quantile } => predictions.quantile_loss(&rows.labels, quantile, LossReduction::None),
        };
        rows.reduce(&losses)
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        let mut metrics: Vec<Box<dyn Metric>> = vec![
            Box::new(RootMeanSquaredError::default()),
            Box::new(MeanAbsoluteError::default()),
            Box::new(RSquared::default()),
        ];
        if let RegressionLoss::Quantile { quantile } = self.loss {
            metrics.push(Box::new(PinballLoss::new(f64::from(quantile))));
        }
        metrics
    }

    fn watched(&self) -> &str {
        match self.loss {
            RegressionLoss::Quantile { .. } => "pinball_loss",
            _ => "rmse",
        }
    }
}
