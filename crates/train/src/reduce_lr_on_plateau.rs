use brisk_metrics::Direction;
use brisk_nn::tensor::program::kernels::Interval;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::settings::direction;

/// Multiplies the learning rates of all further steps by a factor when a metric has stopped improving.
///
/// A trainer does it after its validations ([`TrainerConfig::reduce_lr_on_plateau`](crate::TrainerConfig::reduce_lr_on_plateau)).
/// In a loop of your own, call [`step`](Self::step) after each validation, and train with [`rate`](Self::rate), by which
/// [`Step::scale_rates`](crate::Step::scale_rates) reduces the rates of a [`Step`](crate::Step).
///
/// The rates are those of a [`Schedule`](brisk_nn::Schedule), which continues: a warm-up or a cosine has the same shape after a
/// reduction, at a fraction of the height. [`ParameterGroup`](brisk_nn::ParameterGroup)s multiply the reduced rate by their own
/// factors. An optimizer that is [`Scheduled`](brisk_nn::Scheduled) keeps its own rates.
///
/// # Units
/// Patience and cooldown count calls of [`step`](Self::step): validations, not epochs.
/// # Reference
/// `torch.optim.lr_scheduler.ReduceLROnPlateau`: the same defaults and the same counting. With a constant rate, the rates are the
/// same.
/// # Examples
/// ```
/// use brisk_train::ReduceLrOnPlateau;
/// use brisk_train::metrics::Direction;
///
/// let mut plateau = ReduceLrOnPlateau::new(Direction::Minimize).patience(1);
/// let reduced = [1.0, 0.9, 0.9, 0.9, 0.8].map(|loss| plateau.step(loss, 0.5));
/// assert_eq!(reduced, [false, false, false, true, false]);
/// assert_eq!(plateau.rate(0.5), 0.05);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ReduceLrOnPlateau {
    /// The metric of a trainer's run, such as `valid_loss`; `None` for the one that decides which model is the best.
    pub monitor: Option<String>,
    /// Whether lower or higher is better; `None` for what the trainer's metric says, and otherwise lower. In files of settings,
    /// `mode = "min"` or `"max"`.
    #[serde(rename = "mode", with = "direction")]
    pub direction: Option<Direction>,
    /// The factor, between 0 and 1.
    pub factor: f64,
    /// How many values in a row may be no improvement; the next one reduces the rates.
    pub patience: usize,
    /// By how much a value must be better than the best one to be an improvement.
    pub threshold: f64,
    /// Whether the threshold is a share of the best value.
    pub threshold_mode: ThresholdMode,
    /// How many values after a reduction do not count, unless they are an improvement.
    pub cooldown: usize,
    /// No rate is reduced below this. Rates that the schedule has below it are not changed.
    pub min_lr: f64,
    /// A reduction of the rate by this much or less does not take place.
    pub eps: f64,
    /// The result of the values so far, which a checkpoint keeps. A trainer's run starts without any.
    #[serde(skip)]
    pub state: PlateauState,
}

/// What the [threshold](ReduceLrOnPlateau::threshold) of an improvement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ThresholdMode {
    /// A share of the best value: `rel` in files of settings. As in PyTorch, a value that is slightly worse than a negative best
    /// one counts as an improvement; use [`Absolute`](Self::Absolute) for metrics that may be negative.
    #[serde(rename = "rel")]
    Relative,
    /// A difference from the best value: `abs` in files of settings.
    #[serde(rename = "abs")]
    Absolute,
}

/// The result of the values that a [`ReduceLrOnPlateau`] has had so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PlateauState {
    /// The best value so far; `None` before the first.
    pub best: Option<f64>,
    /// How many values in a row were not an improvement on `best`.
    pub n_bad: usize,
    /// How many of the next values do not count, unless they are an improvement.
    pub cooldown_left: usize,
    /// How often rates have been reduced.
    pub n_reductions: usize,
}

impl ReduceLrOnPlateau {
    /// Factor 0.1 after more than 10 values without a relative improvement of 1e-4; no cooldown and no lowest rate.
    pub fn new(direction: Direction) -> Self {
        Self { direction: Some(direction), ..Self::default() }
    }

    /// Watches the metric `monitor` of a trainer's run, such as `valid_loss`. Whether more of it is better follows from the
    /// metric.
    pub fn on(monitor: impl Into<String>) -> Self {
        Self { monitor: Some(monitor.into()), ..Self::default() }
    }

    /// Sets the factor.
    pub fn factor(mut self, factor: f64) -> Self {
        self.factor = factor;
        self
    }

    /// Sets how many values in a row may be no improvement.
    pub fn patience(mut self, n_values: usize) -> Self {
        self.patience = n_values;
        self
    }

    /// Sets by how much a value must be better than the best one to be an improvement.
    pub fn threshold(mut self, threshold: f64, mode: ThresholdMode) -> Self {
        (self.threshold, self.threshold_mode) = (threshold, mode);
        self
    }

    /// Sets how many values after a reduction do not count.
    pub fn cooldown(mut self, n_values: usize) -> Self {
        self.cooldown = n_values;
        self
    }

    /// Sets the rate below which none is reduced.
    pub fn min_lr(mut self, lr: f64) -> Self {
        self.min_lr = lr;
        self
    }

    /// Takes the metric of one validation, and the rate that the schedule has for the last step. Returns whether rates are
    /// reduced from now on, or further than before. NaN is no improvement.
    pub fn step(&mut self, value: f64, lr: f64) -> bool {
        let is_better = self.is_improvement(value);
        let state = &mut self.state;
        if is_better {
            (state.best, state.n_bad) = (Some(value), 0);
        } else {
            state.n_bad += 1;
        }
        if state.cooldown_left > 0 {
            (state.cooldown_left, state.n_bad) = (state.cooldown_left - 1, 0);
        }
        if state.n_bad <= self.patience {
            return false;
        }
        (state.cooldown_left, state.n_bad) = (self.cooldown, 0);
        let is_reduced = self.can_reduce(lr);
        self.state.n_reductions += usize::from(is_reduced);
        is_reduced
    }

    /// The rate of a step for which the schedule has `lr`.
    pub fn rate(&self, lr: f64) -> f64 {
        // One product after the other, so that the rates are bit-identical to PyTorch's.
        let reduced = (0..self.state.n_reductions).fold(lr, |lr, _| lr * self.factor);
        reduced.max(self.min_lr.min(lr))
    }

    pub(crate) fn check_settings(&self) -> Result<(), Error> {
        let of_mode = if self.threshold_mode == ThresholdMode::Relative { Interval::BelowOne } else { Interval::NonNegative };
        Interval::Open.check("reduce_lr_on_plateau.factor", self.factor)?;
        of_mode.check("reduce_lr_on_plateau.threshold", self.threshold)?;
        Interval::NonNegative.check("reduce_lr_on_plateau.min_lr", self.min_lr)?;
        Ok(Interval::NonNegative.check("reduce_lr_on_plateau.eps", self.eps)?)
    }

    /// The same at the start of a run, with the direction of the metric unless the direction was set.
    pub(crate) fn of_metric(self, direction: Direction) -> Self {
        Self { direction: self.direction.or(Some(direction)), state: PlateauState::default(), ..self }
    }

    /// Whether one more reduction would change the rate `lr` of the schedule.
    pub(crate) fn can_reduce(&self, lr: f64) -> bool {
        let rate = self.rate(lr);
        rate - (rate * self.factor).max(self.min_lr) > self.eps
    }

    fn is_improvement(&self, value: f64) -> bool {
        let direction = self.direction.unwrap_or(Direction::Minimize);
        let best = self.state.best.unwrap_or(direction.worst());
        let limit = match (direction, self.threshold_mode) {
            (Direction::Minimize, ThresholdMode::Relative) => best * (1.0 - self.threshold),
            (Direction::Maximize, ThresholdMode::Relative) => best * (1.0 + self.threshold),
            (Direction::Minimize, ThresholdMode::Absolute) => best - self.threshold,
            (Direction::Maximize, ThresholdMode::Absolute) => best + self.threshold,
        };
        direction.is_better(value, limit)
    }
}

/// Watches the metric that decides which model is the best, with the settings of [`ReduceLrOnPlateau::new`].
impl Default for ReduceLrOnPlateau {
    fn default() -> Self {
        Self {
            monitor: None,
            direction: None,
            factor: 0.1,
            patience: 10,
            threshold: 1e-4,
            threshold_mode: ThresholdMode::Relative,
            cooldown: 0,
            min_lr: 0.0,
            eps: 1e-8,
            state: PlateauState::default(),
        }
    }
}
