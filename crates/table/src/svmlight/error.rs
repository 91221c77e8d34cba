/// What is wrong with a line of an svmlight file: what was found, what was expected, and what to do next.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SvmlightError {
    /// The line does not start with a label.
    #[error("found the label {found:?}, expected {expected}")]
    Label {
        /// What stood there, shortened if long.
        found: Box<str>,
        /// What should have, and what to do next.
        expected: &'static str,
    },
    /// What stands behind `qid:` is no whole number.
    #[error("found the query {found:?}, expected `qid:` and a whole number; mend it, or pass `BadRows::Skip`")]
    Query {
        /// What stood there, shortened if long.
        found: Box<str>,
    },
    /// Something that is no feature.
    #[error("found {found:?}, expected `index:value`; mend it, or pass `BadRows::Skip`")]
    Feature {
        /// What stood there, shortened if long.
        found: Box<str>,
    },
    /// A value that cannot be stored.
    #[error("feature {index}: found {found:?}, expected {expected}")]
    Value {
        /// The feature's index, as in the file.
        index: usize,
        /// What stood there, shortened if long.
        found: Box<str>,
        /// What should have, and what to do next.
        expected: &'static str,
    },
    /// A feature that is given twice.
    #[error("feature {index} is given twice; leave one out, or pass `BadRows::Skip`")]
    Twice {
        /// Its index.
        index: usize,
    },
    /// Features in another order than that of their indices.
    #[error("feature {index} stands behind {previous}, indices must rise; sort the row, or pass `BadRows::Skip`")]
    NotRising {
        /// The index before.
        previous: usize,
        /// The one that is not larger.
        index: usize,
    },
    /// Index 0 in a file that is said to count from 1.
    #[error("feature 0 in a file whose first index is said to be 1; pass `FirstIndex::Zero` or `FirstIndex::Auto`")]
    BelowFirst,
    /// An index beyond the features that a row was said to have.
    #[error(
        "feature {index}, rows have {n_features} features and the last is {last}; pass a larger `n_features`, or `BadRows::Skip`"
    )]
    BeyondLast {
        /// The index.
        index: usize,
        /// How many features a row has.
        n_features: usize,
        /// The index of the last.
        last: usize,
    },
    /// An index that no dense row can have.
    #[error("feature {found}, indices up to {limit} are read since rows become dense; hash or choose features first")]
    TooLarge {
        /// The index.
        found: Box<str>,
        /// The largest.
        limit: usize,
    },
    /// A line that does not end.
    #[error("the line that starts here has no end within {limit_bytes} bytes; is this an svmlight file?")]
    LineTooLong {
        /// How far was looked.
        limit_bytes: usize,
    },
}
