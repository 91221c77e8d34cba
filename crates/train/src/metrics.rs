//! Metrics over a whole set of predictions, on the host: exact, parallel, and the same from run to run.
//!
//! Each equals the scikit-learn function that its documentation names. Binary metrics take a logit a row (the score before the
//! sigmoid, whose sign is the prediction) and labels that are 0.0 or 1.0; the others take `n_classes` logits a row, row-major, and
//! class numbers. A NaN among the predictions is an error, as in scikit-learn; infinities, which it refuses, are ordered as numbers.

mod accuracy;
mod f1;
mod log_loss;
mod roc_auc;
mod rows;

pub use accuracy::{accuracy, accuracy_binary};
pub use f1::f1;
pub use log_loss::{log_loss, log_loss_binary};
pub use roc_auc::roc_auc;
