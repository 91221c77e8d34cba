use std::fmt;

use crate::error::Error;
use crate::kernel::kernel::Kernel;

/// The numbers that a setting may be: all checks of settings say the same about the same range. None includes NaN or infinities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Interval {
    /// Any finite number.
    Finite,
    /// 0 or more.
    NonNegative,
    /// More than 0.
    Positive,
    /// From 0 to 1.
    Unit,
    /// From 0 to 1, without 1.
    BelowOne,
    /// Between 0 and 1, without both.
    Open,
}

/// A setting whose value is outside of its [`Interval`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outside {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub found: String,
    /// What it may be.
    pub expected: &'static str,
}

impl Interval {
    /// Whether `value` is in the interval.
    pub fn contains(self, value: f64) -> bool {
        match self {
            Self::Finite => value.is_finite(),
            Self::NonNegative => value.is_finite() && value >= 0.0,
            Self::Positive => value.is_finite() && value > 0.0,
            Self::Unit => (0.0..=1.0).contains(&value),
            Self::BelowOne => (0.0..1.0).contains(&value),
            Self::Open => value > 0.0 && value < 1.0,
        }
    }

    /// The interval in words, for an error.
    pub fn expected(self) -> &'static str {
        match self {
            Self::Finite => "a finite number",
            Self::NonNegative => "a finite number that is not negative",
            Self::Positive => "a finite number above 0",
            Self::Unit => "a number from 0 to 1",
            Self::BelowOne => "a number from 0 to below 1",
            Self::Open => "a number between 0 and 1, neither of them",
        }
    }

    /// Checks a setting.
    ///
    /// # Errors
    /// [`Outside`], if `value` is.
    /// # Examples
    /// ```
    /// use brisk_kernels::Interval;
    ///
    /// let outside = Interval::BelowOne.check("momentum", 1.5_f32).unwrap_err();
    /// assert_eq!(outside.to_string(), "momentum = 1.5, expected a number from 0 to below 1");
    /// ```
    pub fn check<T: Copy + Into<f64> + fmt::Display>(self, name: &'static str, value: T) -> Result<(), Outside> {
        let outside = || Outside { name, found: value.to_string(), expected: self.expected() };
        if self.contains(value.into()) { Ok(()) } else { Err(outside()) }
    }
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, found, expected } = self;
        write!(f, "{name} = {found}, expected {expected}")
    }
}

/// Checks settings of a kernel.
pub(crate) fn check_settings(kernel: &dyn Kernel, settings: &[(&'static str, f32, Interval)]) -> Result<(), Error> {
    let check = |&(name, value, interval): &(&'static str, f32, Interval)| interval.check(name, value);
    settings.iter().try_for_each(check).map_err(|Outside { name, found, expected }| Error::Unsupported {
        kernel: kernel.name(),
        found: format!("{name} = {found}"),
        expected,
    })
}
