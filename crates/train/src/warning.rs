use brisk_atomic_file::printable;

use crate::error::phrases::naming;
use crate::gradient_clip::GradientClip;

/// Something that is allowed but hardly ever intended. Its `Display` is one line for people.
///
/// Warnings that follow from the settings are known when a trainer is made ([`Training::warnings`](crate::Training::warnings));
/// those of a run are shown by its [`Progress`](crate::Progress) when they occur. All of them are in its
/// [report](crate::FitReport::warnings), also in the [file](crate::ReportFile).
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Warning {
    /// The batch size is larger than the number of rows, so that an epoch is one batch of all rows.
    #[error("the batch size is {batch_rows}, but there are only {n_rows} rows to train on: an epoch is one step")]
    BatchBeyondRows { batch_rows: usize, n_rows: usize },
    /// Gradients are clipped to less than [`TINY_CLIP`](Self::TINY_CLIP), so that parameters hardly change.
    #[error(
        "gradients are clipped to {}",
        match clip {
            GradientClip::Norm(limit) => format!("a norm of {limit:e}, which leaves the parameters as they are; usual norms are 0.1 to 10"),
            GradientClip::Value(limit) => format!("{limit:e}, which leaves the parameters as they are; usual limits are 0.1 to 10"),
        }
    )]
    TinyClip { clip: GradientClip },
    /// Batches are normalised by the statistics of each replica's part, so that the result depends on the number of replicas.
    #[error(
        "batch normalisation uses the statistics of each of {n_replicas} replicas' part of a batch, so the result differs from that of one device; `BatchStatistics::OfAll` uses those of the whole batch"
    )]
    StatisticsOfReplica { n_replicas: usize },
    /// The optimizer's average is validated, such as that of [`ScheduleFreeAdamW`](brisk_nn::ScheduleFreeAdamW), with the running
    /// statistics of batch normalisation that belong to the parameters of the steps.
    #[error(
        "the optimizer's average is validated with the running statistics of batch normalisation of the parameters that are trained, which differ from its own; layer normalisation, or another optimizer with `TrainerConfig::ema`, has no such difference"
    )]
    StatisticsOfIterates,
    /// The model keeps the standardisation of the rows that it was trained on before, with which these rows are far from mean 0
    /// and deviation 1. Set [`Trainer::standardisation`](crate::Trainer::standardisation) to that of the rows, or to the model's
    /// own, if that is intended. `column` is the first such column; mean and deviation are `kept`, and in the training rows
    /// `of_rows`.
    #[error(
        "column {column} has mean {} and deviation {}, but the model keeps standardising it by mean {} and deviation {}, those of the rows that it was trained on before; `Trainer::standardisation` with `Standardisation::of(…)` uses those of these rows",
        of_rows[0],
        of_rows[1],
        kept[0],
        kept[1]
    )]
    KeptStandardisation { column: usize, kept: [f32; 2], of_rows: [f32; 2] },
    /// The validation rows have weights, which are used in training only.
    #[error(
        "the {n_rows} validation rows have weights, which the validation loss and the metrics do not use: each row counts once"
    )]
    UnusedWeights { n_rows: usize },
    /// The first loss is [`LARGE_LOSS`](Self::LARGE_LOSS) or more.
    #[error(
        "the first loss is {loss:e}; look for features, labels or weights of the wrong scale: labels of a regression are not standardised"
    )]
    LargeLoss { loss: f32 },
    /// A metric, named as in logs (`valid_r2`), that does not exist for the validation rows, such as R² of labels that are all
    /// the same; the run leaves it out.
    #[error("`{metric}` is left out: {reason}")]
    UndefinedMetric { metric: String, reason: String },
    /// The mean loss on the validation rows is NaN or infinite, for the first time in the run, after this batch of this epoch,
    /// both from 1. If the loss of a training step is, the run ends ([`Error::NonFiniteLoss`](crate::Error::NonFiniteLoss)).
    #[error(
        "the validation loss after batch {batch} of epoch {epoch} is {loss}: the model diverges, or its outputs are too large for the loss; lower the learning rate, clip gradients, or find the operation with `TrainerConfig::detect_anomaly`"
    )]
    NonFiniteValidLoss { epoch: usize, batch: usize, loss: f64 },
    /// A checkpoint, or what belongs to it, could not be copied to the run's [store](crate::Outputs::store), for the first time
    /// or again. It is copied with the next one.
    #[error("not copied; the next checkpoint tries again: {}", printable(&naming(object, reason)))]
    NotCopied { object: String, reason: String },
    /// At the end of the run, the store does not have its latest checkpoints: these objects are missing, or are older ones;
    /// `reason` is its last error. Those in the run's folder are complete.
    #[error(
        "the run has ended without copies of its latest checkpoints: {}; copy the run's folder before it is lost",
        printable(&naming(&objects.join(", "), reason))
    )]
    CopiesMissing { objects: Vec<String>, reason: String },
    /// The [report](crate::Trainer::report) could not be written at the end of the run. The model is trained nevertheless.
    #[error("the report was not written: {}", printable(reason))]
    NoReport { reason: String },
    /// A setting has no effect on the run, or another one than intended.
    #[error("`{setting}` has not the intended effect: {reason}")]
    NoEffect { setting: &'static str, reason: String },
    /// All steps of an epoch, counted from 1, were skipped, so that it trained nothing, while the loss scale was reduced, to
    /// `scale` at its end.
    #[error(
        "epoch {epoch} trained nothing: {} overflowed f16 and were skipped; the loss scale is now {scale:e}",
        if *n_skipped == 1 { "the only step".to_owned() } else { format!("all {n_skipped} steps") }
    )]
    NoStepTaken { epoch: usize, n_skipped: u32, scale: f32 },
}

impl Warning {
    /// Below this, the effect of a clipped gradient is lost: it is less than the smallest change of f32 parameters of size 1, and
    /// Adam's ε is larger than the elements of a gradient of this norm.
    pub const TINY_CLIP: f32 = 1e-6;

    /// Losses of a new model are about 1; a loss of this size comes from features, labels or weights of the wrong scale.
    pub const LARGE_LOSS: f32 = 1e10;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_one_line() {
        let all = [
            Warning::BatchBeyondRows { batch_rows: 1000, n_rows: 90 },
            Warning::TinyClip { clip: GradientClip::Norm(0.0) },
            Warning::TinyClip { clip: GradientClip::Value(1e-30) },
            Warning::UnusedWeights { n_rows: 20 },
            Warning::LargeLoss { loss: 1e20 },
            Warning::UndefinedMetric { metric: "valid_r2".to_owned(), reason: "r2: all 20 labels are the same".to_owned() },
            Warning::NonFiniteValidLoss { epoch: 1, batch: 8, loss: f64::INFINITY },
            Warning::NotCopied { object: "s3://b/last.safetensors".to_owned(), reason: "403\nForbidden".to_owned() },
            Warning::CopiesMissing { objects: vec!["s3://b/last.safetensors".to_owned()], reason: "403".to_owned() },
            Warning::NoReport { reason: "r.html: No space left".to_owned() },
            Warning::NoStepTaken { epoch: 1, n_skipped: 1, scale: 256.0 },
            Warning::NoStepTaken { epoch: 2, n_skipped: 8, scale: 256.0 },
        ];
        let said = all.map(|warning| warning.to_string());
        assert_eq!(said[0], "the batch size is 1000, but there are only 90 rows to train on: an epoch is one step");
        assert!(said.iter().all(|line| !line.is_empty() && !line.contains('\n')), "{said:?}");
    }
}
