//! The properties of a run that a checkpoint records, and whether another run can resume from it.

use brisk_loader::Order;
use brisk_nn::GradScalerConfig;

use super::Training;
use crate::checkpoint::FORMAT_VERSION;
use crate::run_state::RunState;
use crate::trainer::described_ema;
use crate::{Checkpoint, Described, Error, GradientClip, ResumeDifference, ResumeMismatch};

/// A value recorded under `key`, which must be the same in a run that resumes.
struct Recorded {
    key: &'static str,
    what: &'static str,
    mismatch: ResumeMismatch,
    value: String,
    /// Whether a position within an epoch has a different meaning if this differs.
    moves_batches: bool,
}

/// The key for the settings of an average; checkpoints of earlier versions do not have it.
const EMA: &str = "ema";

impl Training<'_> {
    /// The differences from the run that wrote the checkpoint, in what [`resume`](Self::resume) requires to be the same.
    pub fn resume_differences(&self, checkpoint: &Checkpoint) -> Vec<ResumeDifference> {
        let format = checkpoint.format_version().is_none().then(|| ResumeDifference {
            mismatch: ResumeMismatch::Format,
            what: "format version",
            checkpoint: "none".to_owned(),
            run: FORMAT_VERSION.to_string(),
        });
        format.into_iter().chain(self.differing(checkpoint).into_iter().map(|(_, difference)| difference)).collect()
    }

    /// Checks that this run may resume from the checkpoint, and returns its position. Changes neither device nor disk.
    pub(super) fn accept(&self, checkpoint: &Checkpoint, allowed: &[ResumeMismatch]) -> Result<RunState, Error> {
        if let Some(replicas) = self.replicas {
            let content = format!("content {:016x}", checkpoint.fingerprint());
            replicas.agree(vec![Described { what: "the checkpoint to resume from".to_owned(), is: content }])?;
        }
        let refused: Vec<ResumeDifference> =
            self.resume_differences(checkpoint).into_iter().filter(|found| !allowed.contains(&found.mismatch)).collect();
        if !refused.is_empty() {
            return Err(Error::ResumeMismatch { checkpoint: checkpoint.name(), differences: refused });
        }
        let mut run = RunState::of(checkpoint, self.early_stopping(), self.validation.watched(), self.params)?;
        if self.differing(checkpoint).iter().any(|(recorded, _)| recorded.moves_batches) {
            // The batches of the epoch have changed, so the epoch starts again.
            run.restart_epoch();
        }
        run.check(checkpoint, self.n_batches, self.config.accumulate)?;
        Ok(run)
    }

    /// Adds the values that must be the same when a run resumes.
    pub(super) fn record_into(&self, checkpoint: &mut Checkpoint) {
        for Recorded { key, value, .. } in self.recorded() {
            checkpoint.insert_metadata(key, value);
        }
    }

    fn differing(&self, checkpoint: &Checkpoint) -> Vec<(Recorded, ResumeDifference)> {
        let differs = |recorded: Recorded| {
            let found = match checkpoint.metadata::<String>(recorded.key, "text") {
                Ok(found) => found,
                Err(_) if recorded.key == EMA => "none".to_owned(),
                // Files from before the format had versions record less.
                Err(_) if checkpoint.format_version().is_none() => return None,
                Err(_) => "not recorded".to_owned(),
            };
            (found != recorded.value).then(|| {
                let Recorded { what, mismatch, ref value, .. } = recorded;
                let difference = ResumeDifference { mismatch, what, checkpoint: found, run: value.clone() };
                (recorded, difference)
            })
        };
        self.recorded().into_iter().filter_map(differs).collect()
    }

    fn recorded(&self) -> Vec<Recorded> {
        use ResumeMismatch::{Precision, Rows, Settings};

        let config = &self.config;
        let [train, valid] = self.digests.map(|digest| format!("digest {digest}"));
        let clip = match config.clip {
            None => "none".to_owned(),
            Some(GradientClip::Norm(norm)) => format!("norm at most {norm}"),
            Some(GradientClip::Value(value)) => format!("values at most {value}"),
        };
        let scaling = match self.step.scaler.config() {
            GradScalerConfig { enabled: true, growth_factor, growth_interval, backoff_factor, .. } => {
                format!("times {growth_factor} after {growth_interval} steps, times {backoff_factor} after an overflow")
            }
            _ => "none".to_owned(),
        };
        let ema = config.ema.map_or("none".to_owned(), |ema| described_ema(&ema));
        let order = match self.train.order() {
            Order::Shuffled { seed } if *seed == config.seed => "shuffled by the seed".to_owned(),
            order => order.to_string(),
        };
        let recorded = |key, what, mismatch, value, moves_batches| Recorded { key, what, mismatch, value, moves_batches };
        vec![
            recorded("train_rows", "training rows", Rows, train, true),
            recorded("valid_rows", "validation rows", Rows, valid, false),
            recorded("precision", "precision", Precision, config.precision.to_string(), false),
            recorded("loss_scaling", "loss scaling", Precision, scaling, false),
            recorded("seed", "seed", Settings, config.seed.to_string(), true),
            recorded("order", "order of rows", Settings, order, true),
            recorded("batch_rows", "batch size", Settings, config.batch_rows.to_string(), true),
            recorded("n_batches", "batches per epoch", Settings, self.n_batches.to_string(), true),
            recorded("accumulate", "batches per step", Settings, config.accumulate.to_string(), true),
            recorded("learning_rate", "learning rate", Settings, config.schedule.to_string(), false),
            recorded("clip", "gradient clipping", Settings, clip, false),
            recorded(EMA, "average of the parameters", Settings, ema, false),
            recorded("watched", "watched metric", Settings, self.validation.watched().to_owned(), false),
        ]
    }
}
