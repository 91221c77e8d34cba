use brisk_nn::ScalerReport;
use brisk_nn::tensor::program::Profile;
use brisk_report::EpochMetrics;

use crate::data_parallel::Waited;
use crate::early_stopping::StopReason;
use crate::warning::Warning;

/// The result of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct FitReport {
    /// Finished epochs, including their validations and the epochs before the run was resumed. A run that ends within an epoch
    /// has not finished it.
    pub n_epochs: usize,
    /// The epoch, from 1, whose weights are kept: those at its end, or at a validation within it.
    pub best_epoch: usize,
    /// The batch of that epoch, from 1, after which these weights were validated: the last, if they are from its end.
    pub best_batch: usize,
    /// The metric that decides which model is the best, such as `valid_auc`.
    pub watched: String,
    /// Its value for the best model.
    pub best_value: f64,
    /// The metrics of each epoch since the run was started or resumed, and of each
    /// [validation within](crate::TrainerConfig::validate_within_epoch) an epoch.
    pub history: Vec<EpochMetrics>,
    /// Why the run ended.
    pub ended: Ended,
    /// Seconds spent in training steps only.
    pub train_seconds: f64,
    /// Training rows per second, of the steps only.
    pub train_rows_per_s: f64,
    /// Warnings, in the order in which they were found.
    pub warnings: Vec<Warning>,
    /// Loss scale and skipped steps, if products are computed in f16.
    pub scaler: Option<ScalerReport>,
    /// How long replicas waited for the last one, with several replicas.
    pub waited: Option<Waited>,
    /// The time of each kernel of the step, if [requested](crate::TrainerConfig::profile_batches).
    pub profile: Option<Profile>,
}

impl FitReport {
    /// The watched metric of each entry of the [history](Self::history).
    pub fn watched_values(&self) -> Vec<f64> {
        self.history.iter().map(|epoch| epoch.get(&self.watched).unwrap_or(f64::NAN)).collect()
    }
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// All epochs are done.
    MaxEpochs,
    /// The [limit](crate::TrainerConfig::max_steps) on the number of steps is reached.
    MaxSteps,
    /// The [time limit](crate::TrainerConfig::max_time) is reached.
    MaxTime,
    /// A [`Callback`](crate::Callback) ended it.
    Callback,
    /// Validation no longer improved.
    Early(StopReason),
    /// The [`StopFlag`](crate::StopFlag) was set. If the run has a folder, `last.safetensors` is the checkpoint to resume from.
    Stopped,
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::MaxEpochs => f.write_str("after the last epoch"),
            Self::MaxSteps => f.write_str("after the last step"),
            Self::MaxTime => f.write_str("at the end of its time"),
            Self::Callback => f.write_str("by a callback"),
            Self::Early(reason) => write!(f, "early: {reason}"),
            Self::Stopped => f.write_str("stopped on request"),
        }
    }
}
