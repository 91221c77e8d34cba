//! Metrics over a set of rows, on the host: exact, parallel, and deterministic.
//!
//! A [`Metric`] is updated with the rows of one batch at a time and computed at the end; the result does not depend on how the rows
//! were divided into batches. Each metric equals the scikit-learn function that its documentation names. The free functions
//! ([`roc_auc`], [`accuracy`], …) measure rows that are all in memory.
//!
//! Metrics take what a model outputs: logits for classification, predictions for regression. The kind of task follows from the
//! numbers of outputs and labels per row, see [`Scored`]. Rows can have weights, which mean what `sample_weight` does in
//! scikit-learn. A NaN among the outputs is an error, as in scikit-learn; infinities, which scikit-learn refuses, are ordered as
//! numbers.
//!
//! # Examples
//! ```
//! use brisk_train::metrics::{Accuracy, Metric, RocAuc, Scored};
//!
//! let mut metrics: Vec<Box<dyn Metric>> = vec![Box::new(Accuracy::new()), Box::new(RocAuc::new())];
//! for (logits, labels) in [([-2.0, 0.5], [0.0, 0.0]), ([-0.1, 1.5], [1.0, 1.0])] {
//!     for metric in &mut metrics {
//!         metric.update(&Scored::binary(&logits, &labels))?;
//!     }
//! }
//! let results: Vec<String> = metrics.iter().map(|m| Ok(format!("{} {}", m.name(), m.compute()?))).collect::<Result<_, brisk_train::Error>>()?;
//! assert_eq!(results, ["accuracy 0.5", "auc 0.75"]);
//! # Ok::<(), brisk_train::Error>(())
//! ```

mod accuracy;
mod average_precision;
mod brier_score;
mod class_counts;
mod confusion_matrix;
mod curves;
mod error;
mod expected_calibration_error;
mod f1;
mod log_loss;
mod mean_absolute_error;
mod metric;
mod pinball_loss;
mod precision;
mod probability;
mod r_squared;
mod ranked_scores;
mod recall;
mod roc_auc;
mod root_mean_squared_error;
mod scored;
mod subset_accuracy;
mod tally;
mod top_k_accuracy;

pub use accuracy::{Accuracy, accuracy, accuracy_binary};
pub use average_precision::AveragePrecision;
pub use brier_score::BrierScore;
pub use class_counts::Average;
pub use confusion_matrix::ConfusionMatrix;
pub use curves::{calibration_curve, precision_recall_curve, roc_curve};
pub use error::MetricError;
pub use expected_calibration_error::ExpectedCalibrationError;
pub use f1::{F1, f1};
pub use log_loss::{LogLoss, log_loss, log_loss_binary};
pub use mean_absolute_error::MeanAbsoluteError;
pub use metric::{Metric, MetricValue};
pub use pinball_loss::PinballLoss;
pub use precision::Precision;
pub use r_squared::RSquared;
pub use recall::Recall;
pub use roc_auc::{RocAuc, roc_auc};
pub use root_mean_squared_error::RootMeanSquaredError;
pub use scored::Scored;
pub use subset_accuracy::SubsetAccuracy;
pub use top_k_accuracy::TopKAccuracy;
