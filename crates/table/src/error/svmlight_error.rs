use crate::remedy::{Choice, Expected, Remedy};

/// The problem with a line of an svmlight file: what was found, what was expected, and what to do next.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SvmlightError {
    /// The line does not start with a valid label.
    #[error("found the label {found:?}, expected {expected}")]
    Label {
        /// What was found, shortened if long.
        found: Box<str>,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// What follows `qid:` is not a whole number.
    #[error("found the query {found:?}, expected `qid:` and a whole number{}", Choice(CORRECT))]
    Query {
        /// What was found, shortened if long.
        found: Box<str>,
    },
    /// A word that is not a feature.
    #[error("found {found:?}, expected `index:value`{}", Choice(CORRECT))]
    Feature {
        /// What was found, shortened if long.
        found: Box<str>,
    },
    /// A value that cannot be stored.
    #[error("feature {index}: found {found:?}, expected {expected}")]
    Value {
        /// The feature's index, as in the file.
        index: usize,
        /// What was found, shortened if long.
        found: Box<str>,
        /// What was expected, and what to do next.
        expected: &'static Expected,
    },
    /// A feature that is given twice.
    #[error("feature {index} is given twice{}", Choice(CORRECT))]
    Twice {
        /// Its index.
        index: usize,
    },
    /// Features that are not sorted by index.
    #[error("feature {index} follows {previous}, expected rising indices{}", Choice(SORT))]
    NotRising {
        /// The index before.
        previous: usize,
        /// The index that is not larger.
        index: usize,
    },
    /// Index 0 in a file whose first index was given as 1.
    #[error("feature 0 in a file whose first index is said to be 1{}", Choice(FROM_ZERO))]
    BelowFirst,
    /// An index beyond the number of features that was given.
    #[error("feature {index}, rows have {n_features} features and the last is {last}{}", Choice(WIDEN))]
    BeyondLast {
        /// The index.
        index: usize,
        /// The number of features per row.
        n_features: usize,
        /// The index of the last.
        last: usize,
    },
    /// An index that is too large for dense rows.
    #[error("feature {found}, indices up to {limit} are read since rows become dense; hash or choose features first")]
    TooLarge {
        /// The index.
        found: Box<str>,
        /// The largest.
        limit: usize,
    },
    /// A line that has no end within the limit.
    #[error("the line that starts here has no end within {limit_bytes} bytes; is this an svmlight file?")]
    LineTooLong {
        /// The limit, in bytes.
        limit_bytes: usize,
    },
}

const CORRECT: &[Remedy] = &[Remedy::Correct, Remedy::SkipRows];
const SORT: &[Remedy] = &[Remedy::SortRow, Remedy::SkipRows];
const FROM_ZERO: &[Remedy] = &[Remedy::FirstIndexZero];
const WIDEN: &[Remedy] = &[Remedy::MoreFeatures, Remedy::SkipRows];

impl SvmlightError {
    /// What the caller can do.
    pub(crate) fn remedies(&self) -> &'static [Remedy] {
        match self {
            Self::Label { expected, .. } | Self::Value { expected, .. } => expected.remedies,
            Self::Query { .. } | Self::Feature { .. } | Self::Twice { .. } => CORRECT,
            Self::NotRising { .. } => SORT,
            Self::BelowFirst => FROM_ZERO,
            Self::BeyondLast { .. } => WIDEN,
            Self::TooLarge { .. } | Self::LineTooLong { .. } => &[],
        }
    }
}
