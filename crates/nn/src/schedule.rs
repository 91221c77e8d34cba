//! Learning rates as a function of the step.

use std::f64::consts::PI;
use std::fmt;
use std::ops::Range;

#[cfg(test)]
mod tests;

/// The learning rate of each step, the first being step 0.
///
/// A schedule is data and has no state: the rate of any step can be asked for, in any order, so resuming a run needs nothing but
/// its step. A device takes the rates of an epoch as one table, written before the epoch starts ([`Schedule::table`]).
///
/// # Units
/// Steps are optimizer updates, not epochs. To lower a rate once an epoch, count its length in updates: a `step_size` of
/// `2 * updates_per_epoch`.
/// # Reference
/// `torch.optim.lr_scheduler`, whose names the fields keep. The rate of step `n` here is PyTorch's after `n` calls of
/// `scheduler.step()`, which is what its optimizer then uses.
/// # Examples
/// ```
/// use brisk_nn::Schedule;
///
/// let schedule = Schedule::one_cycle(0.4, 100);
/// assert!((schedule.rate(0) - 0.016).abs() < 1e-12);
/// assert!((schedule.rate(29) - 0.4).abs() < 1e-12);
/// assert_eq!(schedule.table(0..100).len(), 100);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Schedule {
    /// The same rate at every step.
    Constant {
        /// The rate.
        lr: f64,
    },
    /// Up to `max_lr` along half a cosine, then down to almost nothing along another. PyTorch's `OneCycleLR` with its cosine and
    /// two phases. [`Schedule::one_cycle`] has PyTorch's defaults.
    OneCycle {
        /// The highest rate, in force at step `pct_start * total_steps - 1`.
        max_lr: f64,
        /// The share of the steps that the way up takes, between 0 and 1.
        pct_start: f64,
        /// The first rate is `max_lr / div_factor`.
        div_factor: f64,
        /// The last rate is the first one divided by this.
        final_div_factor: f64,
        /// How many steps there are. The last one's rate stays in force after them, where PyTorch raises an error.
        total_steps: usize,
    },
    /// Down from `lr` to `eta_min` along half a cosine, and, if training goes on, up again in the next `t_max` steps. PyTorch's
    /// `CosineAnnealingLR`.
    CosineAnnealing {
        /// The first rate.
        lr: f64,
        /// The step at which the rate is `eta_min`. At 0 it is `eta_min` from the start.
        t_max: usize,
        /// The lowest rate.
        eta_min: f64,
    },
    /// Multiplied by `gamma` every `step_size` steps. PyTorch's `StepLR`.
    Step {
        /// The first rate.
        lr: f64,
        /// How many steps each rate is in force. 0 counts as 1.
        step_size: usize,
        /// What the rate is multiplied by.
        gamma: f64,
    },
}

impl Schedule {
    /// A [`Schedule::OneCycle`] with PyTorch's defaults: `pct_start` 0.3, `div_factor` 25, `final_div_factor` 10 000.
    pub fn one_cycle(max_lr: f64, total_steps: usize) -> Self {
        Self::OneCycle { max_lr, pct_start: 0.3, div_factor: 25.0, final_div_factor: 1e4, total_steps }
    }

    /// The rate in force at `step`; step 0 is the first update.
    pub fn rate(&self, step: usize) -> f64 {
        match *self {
            Self::Constant { lr } => lr,
            Self::OneCycle { max_lr, pct_start, div_factor, final_div_factor, total_steps } => {
                let first = max_lr / div_factor;
                let last_step = total_steps.saturating_sub(1) as f64;
                let top_step = pct_start * total_steps as f64 - 1.0;
                let step = (step as f64).min(last_step);
                if step < top_step {
                    half_cosine(first, max_lr, step / top_step)
                } else {
                    let way = last_step - top_step;
                    half_cosine(max_lr, first / final_div_factor, if way > 0.0 { (step - top_step) / way } else { 0.0 })
                }
            }
            Self::CosineAnnealing { lr, t_max, eta_min } => {
                if t_max == 0 {
                    eta_min
                } else {
                    half_cosine(lr, eta_min, step as f64 / t_max as f64)
                }
            }
            Self::Step { lr, step_size, gamma } => lr * gamma.powf((step / step_size.max(1)) as f64),
        }
    }

    /// The rates of `steps` as a device wants them.
    pub fn table(&self, steps: Range<usize>) -> Vec<f32> {
        steps.map(|step| self.rate(step) as f32).collect()
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { lr } => write!(f, "{lr}"),
            Self::OneCycle { max_lr, pct_start, div_factor, final_div_factor, total_steps } => write!(
                f,
                "one cycle of {total_steps} steps up to {max_lr}, of which {pct_start} rise, divided by {div_factor} first and by {final_div_factor} more last"
            ),
            Self::CosineAnnealing { lr, t_max, eta_min } => write!(f, "cosine from {lr} to {eta_min} in {t_max} steps"),
            Self::Step { lr, step_size, gamma } => write!(f, "{lr}, times {gamma} every {step_size} steps"),
        }
    }
}

/// `from` at `way` 0, `to` at 1, flat at both.
fn half_cosine(from: f64, to: f64, way: f64) -> f64 {
    to + (from - to) / 2.0 * (1.0 + (PI * way).cos())
}
