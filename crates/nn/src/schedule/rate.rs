use std::f64::consts::PI;
use std::ops::Range;

use super::{Schedule, Steps};

impl Schedule {
    /// The rate at `step` of a run of `total_steps` steps; step 0 is the first update.
    pub fn rate(&self, step: usize, total_steps: usize) -> f64 {
        let of_run = |steps: Steps| steps.of(total_steps).max(1);
        match *self {
            Self::Constant { lr } => lr,
            Self::OneCycle { max_lr, pct_start, div_factor, final_div_factor, total_steps: length } => {
                let n_steps = of_run(length);
                let first = max_lr / div_factor;
                let (last_step, top_step) = ((n_steps - 1) as f64, pct_start * n_steps as f64 - 1.0);
                let step = (step as f64).min(last_step);
                if step < top_step {
                    half_cosine(first, max_lr, step / top_step)
                } else {
                    let way = last_step - top_step;
                    half_cosine(max_lr, first / final_div_factor, if way > 0.0 { (step - top_step) / way } else { 0.0 })
                }
            }
            Self::CosineAnnealing { lr, t_max, eta_min } => half_cosine(lr, eta_min, step as f64 / of_run(t_max) as f64),
            Self::CosineWarmRestarts { lr, t_0, t_mult, eta_min } => {
                let (step, length) = in_period(step, of_run(t_0), t_mult);
                half_cosine(lr, eta_min, step as f64 / length as f64)
            }
            Self::Step { lr, step_size, gamma } => lr * gamma.powf((step / of_run(step_size)) as f64),
            Self::MultiStep { lr, ref milestones, gamma } => {
                let n_passed = milestones.iter().filter(|milestone| milestone.of(total_steps) <= step).count();
                lr * gamma.powf(n_passed as f64)
            }
            Self::PiecewiseLinear { ref points } => between(points, step, total_steps),
            Self::Polynomial { lr, total_iters, power } => {
                let n_steps = of_run(total_iters);
                lr * (1.0 - step.min(n_steps) as f64 / n_steps as f64).powf(power)
            }
            Self::Exponential { lr, gamma } => lr * gamma.powf(step as f64),
            Self::CosLog { lr, n_cycles } => {
                let share = (step as f64 / total_steps.max(1) as f64).min(1.0);
                let at = (1.0 + (f64::from(n_cycles).exp2() - 1.0) * share).log2();
                lr / 2.0 * (1.0 - (2.0 * PI * at).cos())
            }
            Self::Warmup { steps, ref then } => {
                let n_steps = steps.of(total_steps);
                let after = total_steps.saturating_sub(n_steps);
                match step.checked_sub(n_steps) {
                    Some(step) => then.rate(step, after),
                    None => then.rate(0, after) * (step + 1) as f64 / (n_steps + 1) as f64,
                }
            }
            Self::Function(ref rate) => rate.rate(step, total_steps),
        }
    }

    /// Whether rates depend on the number of the run's steps: if a length is a share of them, or for a [function](Self::from_fn).
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::Schedule;
    ///
    /// assert!(Schedule::one_cycle(0.1).depends_on_length());
    /// assert!(!Schedule::step(0.1, 500, 0.5).depends_on_length());
    /// ```
    pub fn depends_on_length(&self) -> bool {
        let is_share = |steps: &Steps| matches!(steps, Steps::Share(_));
        match self {
            Self::Constant { .. } | Self::Exponential { .. } => false,
            Self::OneCycle { total_steps: length, .. }
            | Self::CosineAnnealing { t_max: length, .. }
            | Self::CosineWarmRestarts { t_0: length, .. }
            | Self::Step { step_size: length, .. }
            | Self::Polynomial { total_iters: length, .. } => is_share(length),
            Self::MultiStep { milestones, .. } => milestones.iter().any(is_share),
            Self::PiecewiseLinear { points } => points.iter().any(|(steps, _)| is_share(steps)),
            Self::Warmup { steps, then } => is_share(steps) || then.depends_on_length(),
            Self::CosLog { .. } | Self::Function(_) => true,
        }
    }

    /// Whether rates are those of a [function](Self::from_fn), which cannot be written down.
    pub fn is_function(&self) -> bool {
        match self {
            Self::Function(_) => true,
            Self::Warmup { then, .. } => then.is_function(),
            _ => false,
        }
    }

    /// The rates of `steps` as a device takes them.
    pub fn table(&self, steps: Range<usize>, total_steps: usize) -> Vec<f32> {
        steps.map(|step| self.rate(step, total_steps) as f32).collect()
    }
}

/// Goes from `from` at `way` 0 to `to` at 1, with a slope of 0 at both ends.
fn half_cosine(from: f64, to: f64, way: f64) -> f64 {
    to + (from - to) / 2.0 * (1.0 + (PI * way).cos())
}

/// The step within its period, and the length of that period. Periods are `length`, `length * growth`, … steps.
fn in_period(mut step: usize, mut length: usize, growth: usize) -> (usize, usize) {
    if growth <= 1 {
        return (step % length, length);
    }
    while step >= length {
        step -= length;
        length = length.saturating_mul(growth);
    }
    (step, length)
}

fn between(points: &[(Steps, f64)], step: usize, total_steps: usize) -> f64 {
    let after = points.partition_point(|(at, _)| at.of(total_steps) <= step);
    match (after.checked_sub(1).map(|before| points[before]), points.get(after)) {
        (Some((start, from)), Some(&(end, to))) => {
            let (start, end) = (start.of(total_steps), end.of(total_steps));
            from + (to - from) * (step - start) as f64 / (end - start) as f64
        }
        (Some((_, rate)), None) | (None, Some(&(_, rate))) => rate,
        (None, None) => 0.0,
    }
}
