use brisk_nn::tensor::Precision;
use brisk_nn::{GradScalerConfig, Schedule};

/// How a run goes.
#[derive(Debug, Clone, PartialEq)]
pub struct TrainerConfig {
    /// Rows a batch, of all replicas together.
    pub batch_rows: usize,
    /// Batches a step: the optimizer takes the mean of their gradients. The last of an epoch's steps may have less, and divides by as many all the same.
    pub accumulate: usize,
    /// What products are computed with, in training and validation. Parameters are f32 in any; f16 scales the loss.
    pub precision: Precision,
    /// How the loss is scaled, where products are f16.
    pub scaler: GradScalerConfig,
    /// So many steps in a row whose gradients are not finite end the run, at the end of an epoch, where products are f16: 100 of them shrink the scale by 2¹⁰⁰.
    pub max_skipped: u32,
    /// What is done to gradients that are too large.
    pub clip: Option<GradientClip>,
    /// The most epochs.
    pub max_epochs: usize,
    /// The learning rate of each step.
    pub schedule: Schedule,
    /// How many epochs without a better validation AUC end the run; 0 never ends it early.
    pub patience: usize,
    /// Seeds the order of rows.
    pub seed: u64,
    /// Steps after which `last.safetensors` is written within an epoch, where there is a folder; 0 writes it at the end of each epoch alone.
    pub checkpoint_every: usize,
}

impl Default for TrainerConfig {
    fn default() -> Self {
        Self {
            batch_rows: 256,
            accumulate: 1,
            precision: Precision::F32,
            scaler: GradScalerConfig::default(),
            max_skipped: 100,
            clip: None,
            max_epochs: 30,
            schedule: Schedule::Constant { lr: 1e-3 },
            patience: 5,
            seed: 0,
            checkpoint_every: 0,
        }
    }
}

/// What is done to gradients that are too large, after they have been unscaled and before the step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum GradientClip {
    /// All together are scaled down so that their norm is at most this.
    Norm(f32),
    /// Each is cut to this size.
    Value(f32),
}
