use crate::error::Error;
use crate::probability::{cross_entropy, softplus};
use crate::scored::Scored;
use crate::tally::{Row, Tally, Target, check_class_labels, metric};

/// The mean negative logarithm of the probability that the model gives to the label, also known as cross-entropy.
///
/// The probability is the sigmoid of a binary logit, or the softmax of a row's logits. Multi-label rows are averaged over their
/// labels. `sklearn.metrics.log_loss(labels, probabilities)` of probabilities in f64, which it clips to `[ε, 1 - ε]` with
/// `ε = 2⁻⁵²`: a label costs at least 2.2e-16 and at most 36.04, whatever the logits are. The loss that a model is trained by is
/// not clipped.
#[derive(Clone, Debug)]
pub struct LogLoss(Tally<[f64; 1]>);

metric!(
    LogLoss,
    "log_loss",
    Minimize,
    |tally, rows| tally.add_scores(rows, Target::of_classification(tally.metric(), rows)?, loss),
    Tally::mean
);

/// The mean of `-ln p[label]`, `p` being the softmax of a row's logits.
///
/// `sklearn.metrics.log_loss(labels, softmax(logits))`, see [`LogLoss`].
///
/// # Shapes
/// `logits`: `[n_rows, n_classes]`, row-major; `labels`: `[n_rows]`, the number of a class, from 0, as in rows.
/// # Errors
/// [`Error`] if the numbers of predictions and labels do not match, if there are no rows, if a label is no class, or a
/// prediction NaN.
pub fn log_loss(logits: &[f32], n_classes: usize, labels: &[f32]) -> Result<f64, Error> {
    check_class_labels("log_loss", logits, n_classes, labels)?;
    Tally::mean_of_rows("log_loss", &Scored::classes(logits, n_classes, labels), Target::Classes, loss)
}

/// The mean of `-ln p` where the label is 1 and of `-ln (1 - p)` where it is 0, `p` being the sigmoid of the logit.
///
/// `sklearn.metrics.log_loss(labels, sigmoid(logits))`, see [`LogLoss`].
///
/// # Shapes
/// `logits`, `labels`: `[n_rows]`; labels are 0.0 or 1.0.
/// # Errors
/// [`Error`] if the numbers of predictions and labels do not match, if there are no rows, if a label is no class, or a
/// prediction NaN.
pub fn log_loss_binary(logits: &[f32], labels: &[f32]) -> Result<f64, Error> {
    Tally::mean_of_rows("log_loss_binary", &Scored::binary(logits, labels), Target::Binary, loss)
}

fn loss(row: Row<'_>, target: Target) -> f64 {
    // -ln (1 - ε), which is ε in f64, and -ln ε.
    let clipped = |loss: f64| loss.clamp(f64::EPSILON, -f64::EPSILON.ln());
    if target == Target::Classes {
        return clipped(cross_entropy(row.outputs, row.class()));
    }
    let elements = row.outputs.iter().zip(row.labels);
    let sum: f64 =
        elements.map(|(&logit, &label)| clipped(softplus(if label > 0.0 { -f64::from(logit) } else { f64::from(logit) }))).sum();
    sum / row.labels.len() as f64
}
