use crate::phrases::{all_labels, all_rows, count, ignored, same_labels};

/// Why a metric has no value for the rows. Rows are counted from 0 over all batches, and labels of a row from 0. `n_rows` counts
/// rows with a weight above 0, where weights matter, and `n_ignored` those of weight 0.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// `labels` labels take `expected` predictions, and there are `found`.
    #[error("{metric}: {labels} labels take {expected} predictions, found {found}")]
    PredictionCount { metric: &'static str, labels: usize, expected: usize, found: usize },
    /// There are no rows to measure.
    #[error("{metric}: no rows; expected at least one")]
    NoRows { metric: &'static str },
    /// A prediction is not a number. `row` is the first such row.
    #[error("{metric}: the prediction of row {row} is NaN; the model diverged at or before the step that made it")]
    NanPrediction { metric: &'static str, row: usize },
    /// A label is none of the classes. `row` is the first such row.
    #[error("{metric}: the label of row {row} is {found}, expected {expected}")]
    Label { metric: &'static str, row: usize, found: f32, expected: String },
    /// The area under a curve is not defined: all labels are `class`. `label` is set for rows with several labels.
    #[error(
        "auc: {}{}, expected both classes; evaluate on more rows, or on shuffled ones",
        all_labels(*n_rows, *class, *label),
        ignored(*n_ignored)
    )]
    OneClass { n_rows: usize, n_ignored: usize, class: u8, label: Option<usize> },
    /// A class has no row, so that areas under curves are not defined. `class` is the first such class.
    #[error("{metric}: none of {n_rows} rows has class {class}, expected rows of each class; evaluate on more rows")]
    MissingClass { metric: &'static str, n_rows: usize, class: usize },
    /// The numbers of outputs and labels per row are not those of a task that the metric measures.
    #[error("{metric}: {} and {} per row, expected {expected}", count(*n_outputs, "output"), count(*n_labels, "label"))]
    Columns { metric: &'static str, n_outputs: usize, n_labels: usize, expected: String },
    /// A setting of a metric has an invalid value.
    #[error("{metric}: `{setting}` is {found}, expected {expected}")]
    Setting { metric: &'static str, setting: &'static str, found: f64, expected: String },
    /// There are `n_rows` rows and `found` weights.
    #[error("{metric}: {} for {}, expected one per row", count(*found, "weight"), count(*n_rows, "row"))]
    RowWeightCount { metric: &'static str, n_rows: usize, found: usize },
    /// A row's weight is negative or not finite. `row` is the first such row.
    #[error("{metric}: the weight of row {row} is {found}, expected a finite number that is not negative")]
    RowWeight { metric: &'static str, row: usize, found: f32 },
    /// All of `n_rows` rows have weight 0.
    #[error("{metric}: the weights of {} are 0, expected one above 0", all_rows(*n_rows))]
    NoRowWeight { metric: &'static str, n_rows: usize },
    /// No label is 1, which the metric needs.
    #[error(
        "{metric}: {}{}, expected one that is 1; evaluate on more rows, or on shuffled ones",
        all_labels(*n_rows, 0, None),
        ignored(*n_ignored)
    )]
    NoPositiveLabel { metric: &'static str, n_rows: usize, n_ignored: usize },
    /// All rows have the same label, so that nothing is explained. `label` is set for rows with several labels.
    #[error("{metric}: {}{}, expected values that differ; evaluate on more rows", same_labels(*n_rows, *label), ignored(*n_ignored))]
    ConstantLabel { metric: &'static str, label: Option<usize>, n_rows: usize, n_ignored: usize },
    /// The error of a metric that brisk does not know.
    #[error("{metric}: {}", with_causes(&**cause))]
    Custom { metric: String, cause: Box<dyn std::error::Error + Send + Sync> },
}

impl Error {
    /// Whether the metric may be defined for more rows than it was given.
    pub fn is_of_few_rows(&self) -> bool {
        match self {
            Self::OneClass { .. }
            | Self::MissingClass { .. }
            | Self::NoPositiveLabel { .. }
            | Self::ConstantLabel { .. }
            | Self::NoRowWeight { .. } => true,
            Self::Custom { cause, .. } => cause.downcast_ref().is_some_and(Self::is_of_few_rows),
            _ => false,
        }
    }
}

/// The messages of an error and its causes in one line. A cause whose message is already in the line is left out.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string);
    chain.reduce(|told, cause| if told.contains(&cause) { told } else { format!("{told}: {cause}") }).unwrap_or_default()
}
