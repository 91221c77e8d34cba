//! Learning rates as a function of the step.

mod check;
mod defaults;
mod rate;
mod rate_fn;
mod settings;
mod steps;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use defaults::{all_steps, one};
use steps::points;

pub use rate_fn::RateFn;
pub use steps::Steps;

/// The learning rate of each step, the first being step 0.
///
/// A schedule is data and has no state: [`Schedule::rate`] gives the rate of any step, in any order, so resuming a run only needs
/// its step. A device takes the rates of an epoch as one table, written before the epoch starts ([`Schedule::table`]).
///
/// # Units
/// Steps are optimizer updates, not epochs. A length is a number of steps or a share of the run's steps ([`Steps`]): `500` or
/// `0.1`.
/// # Reference
/// `torch.optim.lr_scheduler`, whose names the fields keep. The rate of step `n` here is PyTorch's after `n` calls of
/// `scheduler.step()`, which is what its optimizer then uses.
/// # Examples
/// ```
/// use brisk_nn::Schedule;
///
/// // Up for the first 30 % of the run and down to almost nothing, whatever the run's length.
/// let schedule = Schedule::one_cycle(0.4);
/// assert!((schedule.rate(0, 100) - 0.016).abs() < 1e-12);
/// assert!((schedule.rate(29, 100) - 0.4).abs() < 1e-12);
/// assert_eq!(schedule.table(0..100, 100).len(), 100);
///
/// // 10 steps of warm-up, then a tenth of the rate after half of the other steps.
/// let schedule = Schedule::step(0.1, 0.5, 0.1).warmup(10);
/// assert_eq!(schedule.rate(10, 110), 0.1);
/// assert!((schedule.rate(60, 110) - 0.01).abs() < 1e-12);
/// ```
/// # In files of settings
/// A number is a constant rate. Any other schedule is a table with its `name`, its values, and `warmup` for the steps of a
/// warm-up before it, as in `{ name = "cosine", lr = 0.1, warmup = 0.05 }`. What PyTorch has defaults for may be left out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "snake_case", deny_unknown_fields, remote = "Self")]
pub enum Schedule {
    /// The same rate at every step.
    Constant {
        /// The rate.
        lr: f64,
    },
    /// Up to `max_lr` along half a cosine, then down to almost nothing along another. PyTorch's `OneCycleLR` with its cosine and
    /// two phases. [`Schedule::one_cycle`] has PyTorch's defaults.
    OneCycle {
        /// The highest rate, reached at step `pct_start * total_steps - 1`.
        max_lr: f64,
        /// The fraction of the steps in which the rate increases, between 0 and 1.
        #[serde(default = "defaults::pct_start")]
        pct_start: f64,
        /// The first rate is `max_lr / div_factor`.
        #[serde(default = "defaults::div_factor")]
        div_factor: f64,
        /// The last rate is the first one divided by this.
        #[serde(default = "defaults::final_div_factor")]
        final_div_factor: f64,
        /// The length of the cycle. After it, the rate stays at its last value, where PyTorch raises an error.
        #[serde(default = "all_steps")]
        total_steps: Steps,
    },
    /// Down from `lr` to `eta_min` along half a cosine, and up again in the next `t_max` steps if the run continues. PyTorch's
    /// `CosineAnnealingLR`.
    #[serde(rename = "cosine")]
    CosineAnnealing {
        /// The first rate.
        lr: f64,
        /// The step at which the rate is `eta_min`.
        #[serde(default = "all_steps")]
        t_max: Steps,
        /// The lowest rate.
        #[serde(default)]
        eta_min: f64,
    },
    /// Down from `lr` towards `eta_min` along half a cosine, then from `lr` again, in periods that grow by a factor. PyTorch's
    /// `CosineAnnealingWarmRestarts`.
    CosineWarmRestarts {
        /// The first rate of each period.
        lr: f64,
        /// The length of the first period.
        t_0: Steps,
        /// Each period is this many times as long as the previous one.
        #[serde(default = "one")]
        t_mult: usize,
        /// The rate that a period approaches.
        #[serde(default)]
        eta_min: f64,
    },
    /// Multiplied by `gamma` every `step_size` steps. PyTorch's `StepLR`.
    Step {
        /// The first rate.
        lr: f64,
        /// The number of steps with the same rate.
        step_size: Steps,
        /// The factor.
        #[serde(default = "defaults::gamma")]
        gamma: f64,
    },
    /// Multiplied by `gamma` at each of the milestones. PyTorch's `MultiStepLR`.
    MultiStep {
        /// The first rate.
        lr: f64,
        /// The steps at which the rate changes, in increasing order.
        milestones: Vec<Steps>,
        /// The factor.
        #[serde(default = "defaults::gamma")]
        gamma: f64,
    },
    /// Along straight lines between points; constant before the first and after the last.
    PiecewiseLinear {
        /// Steps, in increasing order, and their rates.
        #[serde(deserialize_with = "points")]
        points: Vec<(Steps, f64)>,
    },
    /// `lr * (1 - step / total_iters)^power`, and 0 from step `total_iters` on. PyTorch's `PolynomialLR`.
    #[serde(alias = "linear")]
    Polynomial {
        /// The first rate.
        lr: f64,
        /// The step at which the rate is 0.
        #[serde(default = "all_steps")]
        total_iters: Steps,
        /// The exponent.
        #[serde(default = "defaults::power")]
        power: f64,
    },
    /// `lr * gamma^step`. PyTorch's `ExponentialLR`.
    Exponential {
        /// The first rate.
        lr: f64,
        /// The factor of each step.
        gamma: f64,
    },
    /// Up from 0 to `lr` and down to 0 again in cycles, each twice as long as the previous one: `lr/2 (1 - cos(2π log₂(1 + (2ⁿ -
    /// 1) t)))` at the share `t` of the run, for `n` cycles. `coslog4` of the package `pytabkit` has 4.
    #[serde(rename = "coslog")]
    CosLog {
        /// The highest rate of each cycle.
        lr: f64,
        /// The number of cycles.
        n_cycles: u32,
    },
    /// A linear warm-up, and then another schedule as if the run began there. PyTorch's `SequentialLR` of
    /// `LinearLR(start_factor=1 / (n + 1), total_iters=n)` and the other.
    #[serde(skip)]
    Warmup {
        /// The length `n` of the warm-up: step `k` of it has `(k + 1) / (n + 1)` of the other schedule's first rate.
        steps: Steps,
        /// The schedule after it. Shares of the run are shares of the steps after the warm-up.
        then: Box<Schedule>,
    },
    /// A function of the step and the run's number of steps. PyTorch's `LambdaLR`, except that the function returns the rate, not
    /// a factor.
    #[serde(skip)]
    Function(RateFn),
}

impl Schedule {
    /// The same rate at every step.
    pub fn constant(lr: f64) -> Self {
        Self::Constant { lr }
    }

    /// A [`Schedule::OneCycle`] over the whole run with PyTorch's defaults: `pct_start` 0.3, `div_factor` 25, `final_div_factor`
    /// 10 000.
    pub fn one_cycle(max_lr: f64) -> Self {
        Self::OneCycle {
            max_lr,
            pct_start: defaults::pct_start(),
            div_factor: defaults::div_factor(),
            final_div_factor: defaults::final_div_factor(),
            total_steps: Steps::ALL,
        }
    }

    /// A [`Schedule::CosineAnnealing`] from `lr` to 0 over the whole run.
    pub fn cosine(lr: f64) -> Self {
        Self::CosineAnnealing { lr, t_max: Steps::ALL, eta_min: 0.0 }
    }

    /// A [`Schedule::CosineWarmRestarts`] towards 0, with periods of `t_0`, `t_0 * t_mult`, `t_0 * t_mult²`, … steps.
    pub fn cosine_warm_restarts(lr: f64, t_0: impl Into<Steps>, t_mult: usize) -> Self {
        Self::CosineWarmRestarts { lr, t_0: t_0.into(), t_mult, eta_min: 0.0 }
    }

    /// A [`Schedule::Step`]: multiplied by `gamma` every `step_size` steps.
    pub fn step(lr: f64, step_size: impl Into<Steps>, gamma: f64) -> Self {
        Self::Step { lr, step_size: step_size.into(), gamma }
    }

    /// A [`Schedule::MultiStep`]: multiplied by `gamma` at each of the milestones.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::Schedule;
    ///
    /// let schedule = Schedule::multi_step(0.1, [0.5, 0.75], 0.1);
    /// assert!((schedule.rate(80, 100) - 0.001).abs() < 1e-12);
    /// ```
    pub fn multi_step<S: Into<Steps>>(lr: f64, milestones: impl IntoIterator<Item = S>, gamma: f64) -> Self {
        Self::MultiStep { lr, milestones: milestones.into_iter().map(Into::into).collect(), gamma }
    }

    /// A [`Schedule::PiecewiseLinear`] through `points`, each a step and its rate.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::Schedule;
    ///
    /// // Up to 0.4 in a fifth of the run, then down to 0.
    /// let schedule = Schedule::piecewise_linear([(0.0, 0.0), (0.2, 0.4), (1.0, 0.0)]);
    /// assert_eq!(schedule.rate(10, 100), 0.2);
    /// ```
    pub fn piecewise_linear<S: Into<Steps>>(points: impl IntoIterator<Item = (S, f64)>) -> Self {
        Self::PiecewiseLinear { points: points.into_iter().map(|(steps, rate)| (steps.into(), rate)).collect() }
    }

    /// A [`Schedule::Polynomial`] to 0 over the whole run.
    pub fn polynomial(lr: f64, power: f64) -> Self {
        Self::Polynomial { lr, total_iters: Steps::ALL, power }
    }

    /// From `lr` to 0 along a straight line over the whole run: a [`Schedule::Polynomial`] of power 1.
    pub fn linear(lr: f64) -> Self {
        Self::polynomial(lr, defaults::power())
    }

    /// A [`Schedule::Exponential`]: multiplied by `gamma` after every step.
    pub fn exponential(lr: f64, gamma: f64) -> Self {
        Self::Exponential { lr, gamma }
    }

    /// A function of the step and the run's number of steps. A checkpoint has its values at some steps, by which a run that
    /// resumes with another function is refused.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::Schedule;
    ///
    /// let inverse_square_root = Schedule::from_fn(|step, _total_steps| 0.1 / ((step + 1) as f64).sqrt());
    /// assert_eq!(inverse_square_root.rate(3, 100), 0.05);
    /// ```
    pub fn from_fn(rate: impl Fn(usize, usize) -> f64 + Send + Sync + 'static) -> Self {
        Self::Function(RateFn::new(rate))
    }

    /// The same schedule after a linear warm-up ([`Schedule::Warmup`]) of `steps` steps.
    #[must_use]
    pub fn warmup(self, steps: impl Into<Steps>) -> Self {
        Self::Warmup { steps: steps.into(), then: Box::new(self) }
    }
}
