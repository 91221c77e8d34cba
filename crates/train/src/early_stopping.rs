use std::fmt;
use std::str::FromStr;

use brisk_metrics::Direction;
use brisk_nn::tensor::program::kernels::Interval;
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::settings::direction;

/// Ends a run when a metric no longer improves, or shows that more training is pointless.
///
/// Call [`EarlyStopping::check`] with the metric after each validation. `patience` counts these checks, not epochs. Stopping does
/// not restore the best weights: keep them in a checkpoint.
///
/// # Reference
/// PyTorch Lightning 2.6's `EarlyStopping`: the same defaults, the same checks in the same order, the same reasons.
/// # Examples
/// ```
/// use brisk_train::metrics::Direction;
/// use brisk_train::{EarlyStopping, StopReason};
///
/// let mut early_stopping = EarlyStopping::new(Direction::Maximize).patience(2);
/// assert_eq!(early_stopping.check(0.80), None);
/// assert_eq!(early_stopping.check(0.82), None);
/// assert_eq!(early_stopping.check(0.81), None);
/// assert_eq!(early_stopping.check(0.82), Some(StopReason::PatienceExhausted));
/// assert_eq!(early_stopping.state.best, Some(0.82));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EarlyStopping {
    /// The metric of a trainer's run, such as `valid_accuracy`; `None` for the one that its task watches.
    pub monitor: Option<String>,
    /// Whether lower or higher is better; `None` for what the trainer's metric says, and otherwise lower. In files of settings,
    /// `mode = "min"` or `"max"`.
    #[serde(rename = "mode", with = "direction")]
    pub direction: Option<Direction>,
    /// Stop after this many checks in a row without an improvement. 0 stops at the first, as 1 does.
    pub patience: usize,
    /// A change of at most this much is not an improvement. Its sign is ignored.
    pub min_delta: f64,
    /// Stop as soon as the metric is strictly better than this.
    pub stopping_threshold: Option<f64>,
    /// Stop as soon as the metric is strictly worse than this.
    pub divergence_threshold: Option<f64>,
    /// Whether a metric that is NaN or infinite stops the run. Otherwise it counts as one that did not improve.
    pub check_finite: bool,
    /// The result of the checks so far, which a checkpoint keeps. A trainer's run starts without any.
    #[serde(skip)]
    pub state: EarlyStoppingState,
}

impl EarlyStopping {
    /// Patience 3, no minimal change, no thresholds, and a metric that is not finite stops.
    pub fn new(direction: Direction) -> Self {
        Self { direction: Some(direction), ..Self::default() }
    }

    /// Watches the metric `monitor` of a trainer's run, such as `valid_accuracy` or `train_loss`. Whether more of it is better
    /// follows from the metric.
    pub fn on(monitor: impl Into<String>) -> Self {
        Self { monitor: Some(monitor.into()), ..Self::default() }
    }

    /// Sets how many checks in a row without an improvement stop the run.
    pub fn patience(mut self, n_checks: usize) -> Self {
        self.patience = n_checks;
        self
    }

    /// Sets the change that is needed to count as an improvement.
    pub fn min_delta(mut self, delta: f64) -> Self {
        self.min_delta = delta;
        self
    }

    /// Sets the value past which the metric is good enough.
    pub fn stopping_threshold(mut self, threshold: f64) -> Self {
        self.stopping_threshold = Some(threshold);
        self
    }

    /// Sets the value past which the run is given up.
    pub fn divergence_threshold(mut self, threshold: f64) -> Self {
        self.divergence_threshold = Some(threshold);
        self
    }

    pub(crate) fn check_settings(&self) -> Result<(), Error> {
        let numbers = [
            ("early_stopping.min_delta", Some(self.min_delta)),
            ("early_stopping.stopping_threshold", self.stopping_threshold),
            ("early_stopping.divergence_threshold", self.divergence_threshold),
        ];
        let set = numbers.into_iter().filter_map(|(name, number)| Some((name, number?)));
        Ok(set.into_iter().try_for_each(|(name, number)| Interval::Finite.check(name, number))?)
    }

    /// The same with the direction of the metric, unless the direction was set.
    pub(crate) fn of_metric(self, direction: Direction) -> Self {
        Self { direction: self.direction.or(Some(direction)), ..self }
    }

    pub(crate) fn direction(&self) -> Direction {
        self.direction.unwrap_or(Direction::Minimize)
    }

    /// Takes the metric of one validation and says whether to stop.
    ///
    /// In this order: is it finite, is it past the stopping threshold, past the divergence threshold, has it improved. The first
    /// three stop without touching the best value and the count.
    pub fn check(&mut self, value: f64) -> Option<StopReason> {
        let reason = self.checked(value);
        self.state.stopped = reason.or(self.state.stopped);
        reason
    }

    /// Why the checks so far have stopped the run, if they have. A greater patience than before lets it continue.
    pub fn stopped(&self) -> Option<StopReason> {
        self.state.stopped.filter(|reason| *reason != StopReason::PatienceExhausted || self.state.wait_count >= self.patience)
    }

    fn checked(&mut self, value: f64) -> Option<StopReason> {
        let (direction, state) = (self.direction(), &mut self.state);
        if self.check_finite && !value.is_finite() {
            return Some(StopReason::NonFiniteMetric);
        }
        if self.stopping_threshold.is_some_and(|threshold| direction.is_better(value, threshold)) {
            return Some(StopReason::StoppingThreshold);
        }
        if self.divergence_threshold.is_some_and(|threshold| direction.is_better(threshold, value)) {
            return Some(StopReason::DivergenceThreshold);
        }
        let handicapped = match direction {
            Direction::Minimize => value + self.min_delta.abs(),
            Direction::Maximize => value - self.min_delta.abs(),
        };
        if direction.is_better(handicapped, state.best.unwrap_or(direction.worst())) {
            state.best = Some(value);
            state.wait_count = 0;
            return None;
        }
        state.wait_count += 1;
        (state.wait_count >= self.patience).then_some(StopReason::PatienceExhausted)
    }

    /// One sentence: why the run stopped when `metric` was `value`.
    pub fn explain(&self, reason: StopReason, metric: &str, value: f64) -> String {
        let best = self.state.best.unwrap_or(self.direction().worst());
        match (reason, self.direction()) {
            (StopReason::NonFiniteMetric, _) => format!("{metric} is {value}, no longer a finite number; the best was {best}"),
            (StopReason::StoppingThreshold, _) => {
                format!("{metric} is {value}, past {}, which is good enough", self.stopping_threshold.unwrap_or(f64::NAN))
            }
            (StopReason::DivergenceThreshold, _) => {
                format!("{metric} is {value}, past {}: it diverges", self.divergence_threshold.unwrap_or(f64::NAN))
            }
            (StopReason::PatienceExhausted, direction) => {
                let better = if direction == Direction::Minimize { "fallen below" } else { "risen above" };
                let by = if self.min_delta == 0.0 { String::new() } else { format!(" by more than {}", self.min_delta.abs()) };
                let n = self.state.wait_count;
                format!("{metric} has not {better} {best}{by} in {n} {}", if n == 1 { "check" } else { "checks in a row" })
            }
        }
    }
}

/// Watches the metric that the task of a run watches, with the settings of [`EarlyStopping::new`].
impl Default for EarlyStopping {
    fn default() -> Self {
        Self {
            monitor: None,
            direction: None,
            patience: 3,
            min_delta: 0.0,
            stopping_threshold: None,
            divergence_threshold: None,
            check_finite: true,
            state: EarlyStoppingState::default(),
        }
    }
}

/// Why [`EarlyStopping`] ends a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// The metric is NaN or infinite.
    NonFiniteMetric,
    /// The metric is past the stopping threshold.
    StoppingThreshold,
    /// The metric is past the divergence threshold.
    DivergenceThreshold,
    /// The metric has not improved for too long.
    PatienceExhausted,
}

impl StopReason {
    const ALL: [Self; 4] = [Self::NonFiniteMetric, Self::StoppingThreshold, Self::DivergenceThreshold, Self::PatienceExhausted];

    /// The reason as an identifier: `non_finite_metric`, `stopping_threshold`, `divergence_threshold`, `patience_exhausted`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NonFiniteMetric => "non_finite_metric",
            Self::StoppingThreshold => "stopping_threshold",
            Self::DivergenceThreshold => "divergence_threshold",
            Self::PatienceExhausted => "patience_exhausted",
        }
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NonFiniteMetric => "the metric is no longer a finite number",
            Self::StoppingThreshold => "the metric has reached its stopping threshold",
            Self::DivergenceThreshold => "the metric has passed its divergence threshold",
            Self::PatienceExhausted => "the metric has stopped improving",
        })
    }
}

/// The result of the checks of an [`EarlyStopping`] so far.
///
/// Its [`Display`](fmt::Display) form is written into a checkpoint's metadata and parses back to exactly the same value:
/// ```
/// use brisk_train::EarlyStoppingState;
///
/// let state = EarlyStoppingState { wait_count: 2, best: Some(0.1), stopped: None };
/// assert_eq!(state.to_string(), "wait_count=2 best=0.1 stopped=no");
/// assert_eq!(state.to_string().parse::<EarlyStoppingState>()?, state);
/// # Ok::<(), brisk_train::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EarlyStoppingState {
    /// How many checks in a row did not improve on `best`.
    pub wait_count: usize,
    /// The best value so far; `None` before the first.
    pub best: Option<f64>,
    /// The last reason to stop, if there has been one.
    pub stopped: Option<StopReason>,
}

impl fmt::Display for EarlyStoppingState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { wait_count, best, stopped } = self;
        let best = best.map_or("none".to_owned(), |best| best.to_string());
        write!(f, "wait_count={wait_count} best={best} stopped={}", stopped.map_or("no", StopReason::name))
    }
}

impl FromStr for EarlyStoppingState {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let expected = "`wait_count=N best=X stopped=REASON`, as its `Display` writes it";
        let refused = || Error::setting("early stopping state", format!("{text:?}"), expected);
        parse(text).ok_or_else(refused)
    }
}

fn parse(text: &str) -> Option<EarlyStoppingState> {
    let mut words = text.split(' ');
    let mut value_of = |key: &str| words.next()?.strip_prefix(key)?.strip_prefix('=');
    let wait_count = value_of("wait_count")?.parse().ok()?;
    let best = match value_of("best")? {
        "none" => None,
        best => Some(best.parse().ok()?),
    };
    let stopped = match value_of("stopped")? {
        "no" => None,
        name => Some(StopReason::ALL.into_iter().find(|reason| reason.name() == name)?),
    };
    words.next().is_none().then_some(EarlyStoppingState { wait_count, best, stopped })
}
