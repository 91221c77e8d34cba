use std::fmt;

use serde::{Deserialize, Serialize};

/// How the numbers of a [`Target::Number`](crate::Target::Number) are scaled for training; predictions are in the unit of the
/// numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TargetScale {
    /// To mean 0 and standard deviation 1.
    #[default]
    Standard,
    /// Their natural logarithms, to mean 0 and standard deviation 1: for positive numbers with a long tail, such as prices. The
    /// network then learns the mean of the logarithms, which is below the logarithm of the mean;
    /// [calibration](crate::NumberCalibration) multiplies predictions by the ratio that the validation rows show (Duan 1983,
    /// *Smearing Estimate*).
    Log,
}

impl fmt::Display for TargetScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Log => "log",
        })
    }
}
