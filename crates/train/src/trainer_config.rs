mod run_settings;

use std::path::Path;
use std::time::Duration;

use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::kernels::Interval;
use brisk_nn::{EmaConfig, GradScalerConfig, OptimizerConfig, Schedule};
use serde::{Deserialize, Serialize};

use crate::early_stopping::EarlyStopping;
use crate::error::Error;
use crate::gradient_clip::GradientClip;
use crate::reduce_lr_on_plateau::ReduceLrOnPlateau;
use crate::settings::{self, duration, text};
use crate::warning::Warning;

pub use run_settings::RunSettings;

/// The most batches that are timed kernel by kernel.
const MAX_PROFILED: usize = 64;

/// Settings of a training run, as a value: what a TOML file may set, what a run records, and what is compared when it resumes.
/// Optional features are off by default, and the precision is f32.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainerConfig {
    /// Rows per batch, of all replicas together; 256 by default.
    pub batch_rows: usize,
    /// Whether the last batch of an epoch is left out if it has fewer rows than the others. Otherwise its missing rows have
    /// weight 0 and count as absent in losses and in the statistics of batch normalisation. Validation uses all rows. False by
    /// default.
    pub drop_last: bool,
    /// Batches per step: the optimizer uses the mean of their gradients. The last step of an epoch may have fewer batches, and
    /// divides by the same number. 1 by default.
    pub accumulate: usize,
    /// The precision of products, in training and validation. Parameters are always f32; f16 scales the loss.
    #[serde(with = "text")]
    pub precision: Precision,
    /// How the loss is scaled if products are f16.
    pub scaler: GradScalerConfig,
    /// This many skipped steps in a row end the run, at the end of an epoch, if products are f16: 100 of them shrink the scale by
    /// 2¹⁰⁰. A step is skipped if its gradients are not finite. An epoch without a single step ends the run earlier if its losses
    /// are not finite either, or if the scale has shrunk to 1; so does a run without any step.
    pub max_skipped: u32,
    /// How gradients that are too large are clipped.
    pub clip: Option<GradientClip>,
    /// The maximum number of epochs; 30 by default.
    pub max_epochs: usize,
    /// The run ends after this many steps of the optimizer, with a validation, if that comes first.
    pub max_steps: Option<usize>,
    /// The run ends after this time, with a validation, if that comes first; time before the run was resumed counts. With
    /// replicas it then ends as on a request to stop.
    #[serde(with = "duration")]
    pub max_time: Option<Duration>,
    /// Early stopping does not end the run before this many epochs are finished.
    pub min_epochs: usize,
    /// Validation runs every this many epochs, and after the last.
    pub validate_every: usize,
    /// How often validation also runs within an epoch, after complete steps; `None` for only at its end. It applies to the epochs
    /// that are a multiple of [`validate_every`](Self::validate_every). Each validation counts for early stopping and for the
    /// best model, and writes `last.safetensors`.
    pub validate_within_epoch: Option<ValidationInterval>,
    /// How many batches of each epoch are trained on; `None` for all.
    pub limit_train_batches: Option<Limit>,
    /// How many of the validation rows are used, the first ones, in batches of `batch_rows`; `None` for all.
    pub limit_valid_batches: Option<Limit>,
    /// Evaluates this many batches of validation rows before the first step, so that an error there does not wait for the end of
    /// an epoch; 0 for none. As in every validation, a batch has up to 1024 rows.
    pub sanity_validation: usize,
    /// The optimizer; `None` for the one that [`Trainer::optimizer`](crate::Trainer::optimizer) makes, Adam by default. Both
    /// together are refused.
    pub optimizer: Option<OptimizerConfig>,
    /// The learning rate of each step; 1e-3 by default.
    #[serde(alias = "learning_rate")]
    pub schedule: Schedule,
    /// Multiplies the learning rates of the steps that follow a validation by a factor when a metric no longer improves; `None`
    /// for never.
    pub reduce_lr_on_plateau: Option<ReduceLrOnPlateau>,
    /// Whether a run that resumes keeps the learning rates that were planned by the run that wrote the checkpoint, although it
    /// has more or fewer epochs: lengths of the schedule are shares of the steps that were planned then. Without it, another
    /// number of steps is refused if the rates depend on it.
    pub extend: bool,
    /// An exponential moving average of parameters and buffers, which is validated, kept as the best model and left in the model
    /// by the run; `None` for the parameters themselves.
    pub ema: Option<EmaConfig>,
    /// When the run ends early; `None` for never.
    pub early_stopping: Option<EarlyStopping>,
    /// Seeds the order of rows; 0 by default.
    pub seed: u64,
    /// Steps after which `last.safetensors` is written within an epoch, if the run has a folder; 0 writes it only after
    /// validations and at the end of each epoch.
    pub checkpoint_every: usize,
    /// Time after which `last.safetensors` is written within an epoch, if the run has a folder. Not with replicas: clocks differ.
    #[serde(with = "duration")]
    pub checkpoint_interval: Option<Duration>,
    /// Whether `last.safetensors` is written when an error ends an epoch, such as one of the source of rows, so that the run can
    /// resume after the last complete step. It is not written after a loss that is not finite, since the previous one is then the
    /// last good one. Not for replicas, whose partners have failed.
    pub checkpoint_on_error: bool,
    /// How many checkpoints of the best models by the watched metric are kept, named after epoch and value, in addition to
    /// `best.safetensors`.
    pub keep_best: usize,
    /// Whether every value in training is checked, and the first that is not finite ends the run with the name of its operation,
    /// as `torch.autograd.detect_anomaly` does. With a loss scale above 1, gradients that overflow are not an error: their step
    /// is skipped. For debugging: each batch is awaited, and every value is read once more.
    pub detect_anomaly: bool,
    /// Whether the norm of all gradients is recorded for each batch, for [callbacks](crate::Callback::on_step_end): before
    /// clipping, after accumulation and unscaling. Only callbacks have it read from the device.
    pub record_grad_norms: bool,
    /// How many batches are timed kernel by kernel, at most 64, starting with the second batch of the run; 0 for none. The result
    /// is [`FitReport::profile`](crate::FitReport::profile), a section of the report, and `trace.json` in the run's folder.
    pub profile_batches: usize,
}

impl Default for TrainerConfig {
    fn default() -> Self {
        Self {
            batch_rows: 256,
            drop_last: false,
            accumulate: 1,
            precision: Precision::F32,
            scaler: GradScalerConfig::default(),
            max_skipped: 100,
            clip: None,
            max_epochs: 30,
            max_steps: None,
            max_time: None,
            min_epochs: 0,
            validate_every: 1,
            validate_within_epoch: None,
            limit_train_batches: None,
            limit_valid_batches: None,
            sanity_validation: 0,
            optimizer: None,
            schedule: Schedule::Constant { lr: 1e-3 },
            reduce_lr_on_plateau: None,
            extend: false,
            ema: None,
            early_stopping: None,
            seed: 0,
            checkpoint_every: 0,
            checkpoint_interval: None,
            checkpoint_on_error: false,
            keep_best: 0,
            detect_anomaly: false,
            record_grad_norms: false,
            profile_batches: 0,
        }
    }
}

impl TrainerConfig {
    /// The settings that another value may have in a run that resumes; all others must be the same.
    pub(crate) const FREE: &[&str] = &[
        // What follows from these is compared: batches of an epoch, validation rows, steps of the schedule.
        "drop_last",
        "limit_train_batches",
        "limit_valid_batches",
        // The scale is part of the state.
        "scaler.init_scale",
        // These say when a run ends, is validated, and what it writes.
        "max_epochs",
        "max_steps",
        "max_time",
        "min_epochs",
        "max_skipped",
        "extend",
        "early_stopping",
        "validate_every",
        "validate_within_epoch",
        "sanity_validation",
        "checkpoint_every",
        "checkpoint_interval",
        "checkpoint_on_error",
        "keep_best",
        "detect_anomaly",
        "record_grad_norms",
        "profile_batches",
    ];

    /// The settings without which a position within an epoch has another meaning.
    pub(crate) const MOVES_BATCHES: &[&str] = &["seed", "batch_rows", "accumulate"];

    /// Reads settings from a TOML file. Their names are those of the fields; a field that is left out has its default.
    ///
    /// # Errors
    /// [`Error::Io`]; as [`from_toml`](Self::from_toml).
    pub fn load(path: impl AsRef<Path>) -> Result<Self, Error> {
        settings::load(path.as_ref())
    }

    /// Settings from the text of a TOML file.
    ///
    /// `precision` is `"f32"`, `"f16"` or `"bf16"`; `max_time` and `checkpoint_interval` a number of seconds or `"DD:HH:MM:SS"`;
    /// `limit_train_batches`, `limit_valid_batches` and `validate_within_epoch` a number of batches, or a fraction such as `0.5`;
    /// `learning_rate` a number; `schedule` a table with the name of a [`Schedule`] and its values, where a length is a number of
    /// steps, or a fraction of the run such as `0.1`; `clip` is `{ norm = 1.0 }` or `{ value = 1.0 }`; `optimizer` a table with
    /// the name of an [`OptimizerConfig`] and its values.
    ///
    /// # Errors
    /// [`Error::SettingsFile`] if it is not TOML, or has a setting that does not exist or whose value is of another type.
    /// # Examples
    /// ```
    /// use brisk_train::TrainerConfig;
    ///
    /// let config = TrainerConfig::from_toml(
    ///     r#"
    ///     batch_rows = 1024
    ///     precision = "f16"
    ///     max_epochs = 30
    ///     max_time = "00:02:30:00"
    ///     clip = { norm = 1.0 }
    ///     optimizer = { name = "adamw", weight_decay = 0.05 }
    ///     schedule = { name = "one_cycle", max_lr = 3e-3 }
    ///
    ///     [early_stopping]
    ///     monitor = "valid_accuracy"
    ///     patience = 5
    ///     "#,
    /// )?;
    /// assert_eq!(config.batch_rows, 1024);
    ///
    /// let error = TrainerConfig::from_toml("max_epoch = 30").unwrap_err().to_string();
    /// assert!(error.starts_with("settings, line 1 (`max_epoch = 30`): unknown field `max_epoch`"));
    /// assert!(error.ends_with("did you mean `max_epochs`?"));
    /// # Ok::<(), brisk_train::Error>(())
    /// ```
    pub fn from_toml(text: &str) -> Result<Self, Error> {
        settings::from_toml(text)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        const MOST: usize = u32::MAX as usize; // The device counts in 32 bits.
        let (ema, epochs) = (self.ema, 1..=usize::MAX);
        let of_ema = |of: fn(EmaConfig) -> u32| ema.map_or(1, of) as usize;
        let counts = [
            ("batch_rows", self.batch_rows, 1..=usize::MAX, "at least one row"),
            ("accumulate", self.accumulate, 1..=MOST, "at least one batch per step, and fewer than 2^32"),
            ("max_epochs", self.max_epochs, epochs.clone(), "at least one epoch"),
            ("max_steps", self.max_steps.unwrap_or(1), 1..=usize::MAX, "at least one step, or no limit"),
            ("max_skipped", self.max_skipped as usize, 1..=MOST, "at least one step"),
            ("min_epochs", self.min_epochs, 0..=self.max_epochs, "at most `max_epochs`"),
            ("validate_every", self.validate_every, epochs, "at least one epoch"),
            ("profile_batches", self.profile_batches, 0..=MAX_PROFILED, "at most 64 batches"),
            ("ema.every", of_ema(|ema| ema.every), 1..=MOST, "at least one step"),
            ("ema.first_step", of_ema(|ema| ema.first_step), 1..=MOST, "a step, counted from 1"),
        ];
        if let Some((name, found, _, expected)) = counts.into_iter().find(|(_, found, range, _)| !range.contains(found)) {
            return Err(Error::setting(name, found.to_string(), expected));
        }
        if self.max_time.is_some_and(|time| time.is_zero()) {
            return Err(Error::setting("max_time", "no time at all", "more than 0 seconds, or no limit"));
        }
        if let Some(GradientClip::Norm(limit) | GradientClip::Value(limit)) = self.clip {
            Interval::NonNegative.check("clip", limit)?;
        }
        if let Some(EmaConfig { decay, .. }) = ema {
            Interval::Unit.check("ema.decay", decay)?;
        }
        self.reduce_lr_on_plateau.as_ref().map_or(Ok(()), ReduceLrOnPlateau::check_settings)?;
        self.early_stopping.as_ref().map_or(Ok(()), EarlyStopping::check_settings)
    }

    /// How many of the `n_batches` batches of an epoch are trained on.
    pub(crate) fn train_batches(&self, n_batches: usize) -> Result<usize, Error> {
        self.limit_train_batches.map_or(Ok(n_batches), |limit| limit.of(n_batches))
    }

    /// The maximum number of optimizer steps of a run with so many batches per epoch.
    pub(crate) fn total_steps(&self, n_batches: usize) -> usize {
        let all = self.max_epochs.saturating_mul(n_batches.div_ceil(self.accumulate));
        self.max_steps.map_or(all, |max_steps| max_steps.min(all))
    }

    /// Settings that are allowed but hardly ever intended, for `n_rows` training rows.
    pub(crate) fn warnings(&self, n_rows: usize) -> Vec<Warning> {
        let Self { batch_rows, clip, .. } = *self;
        let is_tiny = |clip: &GradientClip| match clip {
            GradientClip::Norm(limit) | GradientClip::Value(limit) => *limit < Warning::TINY_CLIP,
        };
        let beyond = (batch_rows > n_rows).then_some(Warning::BatchBeyondRows { batch_rows, n_rows });
        let tiny = clip.filter(is_tiny).map(|clip| Warning::TinyClip { clip });
        beyond.into_iter().chain(tiny).collect()
    }
}

/// A limit on the batches of an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of batches, or a fraction such as 0.5")]
pub enum Limit {
    /// At most this many batches.
    Batches(usize),
    /// This fraction of the batches, between 0 and 1, rounded down.
    Share(f64),
}

impl Limit {
    /// The number of batches within the limit, out of `n_batches`.
    ///
    /// # Errors
    /// [`Error::Setting`] if this is 0, or the fraction is not between 0 and 1.
    pub fn of(self, n_batches: usize) -> Result<usize, Error> {
        self.of_setting("limit_train_batches", n_batches)
    }

    /// The same for the setting `name`.
    pub(crate) fn of_setting(self, name: &'static str, n_batches: usize) -> Result<usize, Error> {
        let n = match self {
            Self::Batches(n) => n.min(n_batches),
            Self::Share(share) if (0.0..=1.0).contains(&share) => (n_batches as f64 * share) as usize,
            Self::Share(share) => {
                return Err(Error::setting(name, share.to_string(), "a share of 0 to 1"));
            }
        };
        if n == 0 && n_batches > 0 {
            return Err(Error::setting(name, format!("{self:?} of {n_batches} batches, which is none"), "at least one batch"));
        }
        Ok(n)
    }
}

/// How often the model is validated within an epoch: `val_check_interval` of PyTorch Lightning. Unlike there, the end of the
/// epoch always has a validation, even if it is not a multiple of the interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a number of batches, or a fraction such as 0.5")]
pub enum ValidationInterval {
    /// After every this many batches; with several batches per step, after the step that contains the last of them.
    Batches(usize),
    /// After this fraction of the batches of an epoch, above 0 and at most 1, rounded down to at least one batch: 0.25 validates
    /// four times per epoch.
    Share(f64),
}

impl ValidationInterval {
    /// The batches between two validations, for an epoch of `n_batches`.
    ///
    /// # Errors
    /// [`Error::Setting`] if this is 0, more than an epoch, or a fraction that is not above 0 and at most 1.
    pub fn of(self, n_batches: usize) -> Result<usize, Error> {
        let refused = |found, expected: &'static str| Err(Error::setting("validate_within_epoch", found, expected));
        match self {
            Self::Batches(0) => refused("0 batches".to_owned(), "at least one batch, or nothing for no validation within epochs"),
            Self::Batches(n) if n > n_batches => {
                let found = format!("{n} batches of an epoch that has {n_batches}");
                refused(found, "at most the batches of an epoch; use `validate_every` for an interval of several epochs")
            }
            Self::Batches(n) => Ok(n),
            Self::Share(share) if share > 0.0 && share <= 1.0 => Ok(((n_batches as f64 * share) as usize).max(1)),
            Self::Share(share) => refused(share.to_string(), "a share above 0 and at most 1, or a number of batches"),
        }
    }
}
