use std::fmt;

use super::{Schedule, Steps};

impl Schedule {
    /// The settings one by one: the kind under `schedule`, the others under the names of their fields. Two schedules with the same
    /// settings have the same rates, except for functions.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let named = |name: &str, settings: &[(&'static str, &dyn fmt::Display)]| {
            let settings = settings.iter().map(|&(what, is)| (what, is.to_string()));
            std::iter::once(("schedule", name.to_owned())).chain(settings).collect()
        };
        match self {
            Self::Constant { lr } => named("constant", &[("lr", lr)]),
            Self::OneCycle { max_lr, pct_start, div_factor, final_div_factor, total_steps } => {
                let settings: [(_, &dyn fmt::Display); 5] = [
                    ("max_lr", max_lr),
                    ("pct_start", pct_start),
                    ("div_factor", div_factor),
                    ("final_div_factor", final_div_factor),
                    ("total_steps", total_steps),
                ];
                named("one cycle", &settings)
            }
            Self::CosineAnnealing { lr, t_max, eta_min } => {
                named("cosine annealing", &[("lr", lr), ("t_max", t_max), ("eta_min", eta_min)])
            }
            Self::CosineWarmRestarts { lr, t_0, t_mult, eta_min } => {
                named("cosine with warm restarts", &[("lr", lr), ("t_0", t_0), ("t_mult", t_mult), ("eta_min", eta_min)])
            }
            Self::Step { lr, step_size, gamma } => named("step", &[("lr", lr), ("step_size", step_size), ("gamma", gamma)]),
            Self::MultiStep { lr, milestones, gamma } => {
                named("multi-step", &[("lr", lr), ("milestones", &list(milestones)), ("gamma", gamma)])
            }
            Self::PiecewiseLinear { points } => named("piecewise linear", &[("points", &points_list(points))]),
            Self::Polynomial { lr, total_iters, power } => {
                named("polynomial", &[("lr", lr), ("total_iters", total_iters), ("power", power)])
            }
            Self::Exponential { lr, gamma } => named("exponential", &[("lr", lr), ("gamma", gamma)]),
            Self::Warmup { steps, then } => {
                let mut settings = then.settings();
                settings.push(("warmup", steps.to_string()));
                settings
            }
            Self::Function(_) => named("function", &[]),
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { lr } => write!(f, "{lr}"),
            Self::OneCycle { max_lr, pct_start, div_factor, final_div_factor, total_steps } => write!(
                f,
                "one cycle of {} up to {max_lr}, of which {pct_start} rise, divided by {div_factor} first and by {final_div_factor} more last",
                length(*total_steps)
            ),
            Self::CosineAnnealing { lr, t_max, eta_min } => write!(f, "cosine from {lr} to {eta_min} in {}", length(*t_max)),
            Self::CosineWarmRestarts { lr, t_0, t_mult, eta_min } => {
                write!(f, "cosine from {lr} to {eta_min} in {}, restarted in periods {t_mult} times as long", length(*t_0))
            }
            Self::Step { lr, step_size, gamma } => write!(f, "{lr}, times {gamma} every {}", length(*step_size)),
            Self::MultiStep { lr, milestones, gamma } => write!(f, "{lr}, times {gamma} at steps {}", list(milestones)),
            Self::PiecewiseLinear { points } => write!(f, "linear through {}", points_list(points)),
            Self::Polynomial { lr, total_iters, power } => {
                write!(f, "{lr} to 0 in {}, to the power of {power}", length(*total_iters))
            }
            Self::Exponential { lr, gamma } => write!(f, "{lr}, times {gamma} every step"),
            Self::Warmup { steps, then } => write!(f, "warm-up in {}, then {then}", length(*steps)),
            Self::Function(_) => f.write_str("a function of the step"),
        }
    }
}

fn length(steps: Steps) -> String {
    match steps {
        Steps::Count(1) => "1 step".to_owned(),
        Steps::Count(n) => format!("{n} steps"),
        Steps::Share(1.0) => "all steps".to_owned(),
        Steps::Share(_) => format!("{steps} of the steps"),
    }
}

fn list(steps: &[Steps]) -> String {
    steps.iter().map(Steps::to_string).collect::<Vec<_>>().join(", ")
}

fn points_list(points: &[(Steps, f64)]) -> String {
    points.iter().map(|(steps, rate)| format!("{rate} at {steps}")).collect::<Vec<_>>().join(", ")
}
