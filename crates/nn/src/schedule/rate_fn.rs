use std::fmt;
use std::sync::Arc;

/// A function from a step and the number of steps of a run to a learning rate.
///
/// Two are equal if one is a clone of the other.
#[derive(Clone)]
pub struct RateFn(Arc<Function>);

type Function = dyn Fn(usize, usize) -> f64 + Send + Sync;

impl RateFn {
    /// The function `rate(step, total_steps)`.
    pub(crate) fn new(rate: impl Fn(usize, usize) -> f64 + Send + Sync + 'static) -> Self {
        Self(Arc::new(rate))
    }

    /// The rate of `step` in a run of `total_steps`.
    pub fn rate(&self, step: usize, total_steps: usize) -> f64 {
        (self.0)(step, total_steps)
    }
}

impl PartialEq for RateFn {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for RateFn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RateFn")
    }
}
