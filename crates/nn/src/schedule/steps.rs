use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// A length in steps: a number of steps, or a fraction of the steps of a run.
///
/// An integer converts to a number of steps and a float to a fraction, so `500` is 500 steps and `0.1` a tenth of the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "expected a whole number of steps, or a fraction of the run such as 0.1")]
pub enum Steps {
    /// A number of steps.
    Count(usize),
    /// A fraction of the run's steps, between 0 and 1, rounded to the nearest step.
    Share(f64),
}

impl Steps {
    /// All steps of the run.
    pub const ALL: Self = Self::Share(1.0);

    /// The number of steps in a run of `total_steps`.
    pub fn of(self, total_steps: usize) -> usize {
        match self {
            Self::Count(n) => n,
            Self::Share(share) => (share * total_steps as f64).round() as usize,
        }
    }
}

impl From<usize> for Steps {
    fn from(n: usize) -> Self {
        Self::Count(n)
    }
}

impl From<f64> for Steps {
    fn from(share: f64) -> Self {
        Self::Share(share)
    }
}

/// `500`, `10 %`.
impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(n) => write!(f, "{n}"),
            Self::Share(share) => write!(f, "{} %", (share * 1e8).round() / 1e6),
        }
    }
}

/// Points, of which a step 1 is the end of the run, the fraction 1: a point at the second step is hardly ever intended.
pub(super) fn points<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(Steps, f64)>, D::Error> {
    let points = Vec::<(Steps, f64)>::deserialize(deserializer)?;
    let is_end = |steps: &Steps| *steps == Steps::Count(1);
    Ok(points.into_iter().map(|(steps, lr)| (if is_end(&steps) { Steps::ALL } else { steps }, lr)).collect())
}
