use brisk_kernels::{Interval, Outside};
use brisk_tensor::Error;

use super::{Schedule, Steps};

const OP: &str = "schedule";

/// The maximum number of steps that are checked for a [`Schedule::Function`].
const CHECKED_STEPS: usize = 1 << 16;

impl Schedule {
    /// Checks the settings for a run of `total_steps` steps.
    ///
    /// # Errors
    /// [`Error::Refused`] for a rate that is negative or not finite, a factor that is not above 0, a share that is not between 0
    /// and 1, a length of 0 steps, steps that are not in increasing order, or a lowest rate above the first.
    pub fn check(&self, total_steps: usize) -> Result<(), Error> {
        match *self {
            Self::Constant { lr } => rate("lr", lr),
            Self::OneCycle { max_lr, pct_start, div_factor, final_div_factor, total_steps } => {
                rate("max_lr", max_lr)?;
                within(Interval::Unit, "pct_start", pct_start)?;
                factor("div_factor", div_factor)?;
                factor("final_div_factor", final_div_factor)?;
                length("total_steps", total_steps)
            }
            Self::CosineAnnealing { lr, t_max, eta_min } => {
                falling(lr, eta_min)?;
                length("t_max", t_max)
            }
            Self::CosineWarmRestarts { lr, t_0, t_mult, eta_min } => {
                falling(lr, eta_min)?;
                length("t_0", t_0)?;
                require(t_mult > 0, "t_mult", t_mult as f64, "at least 1")
            }
            Self::Step { lr, step_size, gamma } => {
                rate("lr", lr)?;
                length("step_size", step_size)?;
                factor("gamma", gamma)
            }
            Self::MultiStep { lr, ref milestones, gamma } => {
                rate("lr", lr)?;
                in_order("milestones", milestones, total_steps)?;
                factor("gamma", gamma)
            }
            Self::PiecewiseLinear { ref points } => {
                let (steps, rates): (Vec<Steps>, Vec<f64>) = points.iter().copied().unzip();
                in_order("points", &steps, total_steps)?;
                rates.into_iter().try_for_each(|lr| rate("points", lr))
            }
            Self::Polynomial { lr, total_iters, power } => {
                rate("lr", lr)?;
                length("total_iters", total_iters)?;
                factor("power", power)
            }
            Self::Exponential { lr, gamma } => {
                rate("lr", lr)?;
                factor("gamma", gamma)
            }
            Self::CosLog { lr, n_cycles } => {
                rate("lr", lr)?;
                require((1..=32).contains(&n_cycles), "n_cycles", n_cycles.into(), "between 1 and 32 cycles")
            }
            Self::Warmup { steps, ref then } => {
                share("warmup", steps)?;
                then.check(total_steps.saturating_sub(steps.of(total_steps)))
            }
            Self::Function(ref function) => (0..total_steps.min(CHECKED_STEPS)).try_for_each(|step| {
                let lr = function.rate(step, total_steps);
                if lr.is_finite() && lr >= 0.0 {
                    return Ok(());
                }
                let found = format!("the function gives {lr} at step {step}");
                Err(Error::Refused { op: OP, found, expected: "a finite rate that is not negative" })
            }),
        }
    }
}

fn require(holds: bool, field: &str, found: f64, expected: &'static str) -> Result<(), Error> {
    if holds { Ok(()) } else { Err(Error::Refused { op: OP, found: format!("`{field}` is {found}"), expected }) }
}

fn within(interval: Interval, field: &'static str, value: f64) -> Result<(), Error> {
    let refused = |Outside { expected, .. }| Error::Refused { op: OP, found: format!("`{field}` is {value}"), expected };
    interval.check(field, value).map_err(refused)
}

fn rate(field: &'static str, lr: f64) -> Result<(), Error> {
    within(Interval::NonNegative, field, lr)
}

fn factor(field: &'static str, factor: f64) -> Result<(), Error> {
    within(Interval::Positive, field, factor)
}

fn falling(lr: f64, eta_min: f64) -> Result<(), Error> {
    rate("lr", lr)?;
    rate("eta_min", eta_min)?;
    require(eta_min <= lr, "eta_min", eta_min, "at most the first rate `lr`")
}

fn share(field: &str, steps: Steps) -> Result<(), Error> {
    match steps {
        Steps::Count(_) => Ok(()),
        Steps::Share(share) => {
            require((0.0..=1.0).contains(&share), field, share, "a number of steps, or a share of them between 0 and 1")
        }
    }
}

fn length(field: &str, steps: Steps) -> Result<(), Error> {
    share(field, steps)?;
    let is_some = !matches!(steps, Steps::Count(0)) && steps != Steps::Share(0.0);
    require(is_some, field, 0.0, "at least one step")
}

/// Fractions that are rounded to the same step of a short run are in order; equal numbers of steps are not.
fn in_order(field: &str, steps: &[Steps], total_steps: usize) -> Result<(), Error> {
    if steps.is_empty() {
        return Err(Error::Refused { op: OP, found: format!("`{field}` is empty"), expected: "at least one step" });
    }
    steps.iter().try_for_each(|&steps| share(field, steps))?;
    let is_in_order = |pair: &[Steps]| match (pair[0], pair[1]) {
        (Steps::Count(a), Steps::Count(b)) => a < b,
        (Steps::Share(a), Steps::Share(b)) => a < b,
        (a, b) => a.of(total_steps) <= b.of(total_steps),
    };
    match steps.windows(2).find(|pair| !is_in_order(pair)) {
        None => Ok(()),
        Some(pair) => {
            let found = format!("`{field}` has {} before {}", pair[0], pair[1]);
            Err(Error::Refused { op: OP, found, expected: "steps in increasing order" })
        }
    }
}
