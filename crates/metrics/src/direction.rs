/// Whether lower or higher values of a metric are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Lower is better, as of losses.
    Minimize,
    /// Higher is better, as of accuracies.
    Maximize,
}

impl Direction {
    /// A value that every number is better than: the start of a search for the best.
    pub fn worst(self) -> f64 {
        match self {
            Self::Minimize => f64::INFINITY,
            Self::Maximize => f64::NEG_INFINITY,
        }
    }

    /// Whether `value` is strictly better than `than`. NaN is not better than anything, nor is anything better than NaN.
    pub fn is_better(self, value: f64, than: f64) -> bool {
        match self {
            Self::Minimize => value < than,
            Self::Maximize => value > than,
        }
    }
}
