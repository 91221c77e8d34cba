use crate::phrases::{all_labels, all_rows, count, ignored, same_labels};

/// Why a metric has no value for the rows. Rows are counted from 0 over all batches.
#[non_exhaustive]
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The numbers of predictions and labels do not match.
    #[error("{metric}: {labels} labels take {expected} predictions, found {found}")]
    PredictionCount {
        /// Which metric.
        metric: &'static str,
        /// How many labels there are.
        labels: usize,
        /// How many predictions these require.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// There are no rows to measure.
    #[error("{metric}: no rows; expected at least one")]
    NoRows {
        /// Which metric.
        metric: &'static str,
    },
    /// A prediction is not a number.
    #[error("{metric}: the prediction of row {row} is NaN; the model diverged at or before the step that made it")]
    NanPrediction {
        /// Which metric.
        metric: &'static str,
        /// The first row.
        row: usize,
    },
    /// A label is none of the classes.
    #[error("{metric}: the label of row {row} is {found}, expected {expected}")]
    Label {
        /// Which metric.
        metric: &'static str,
        /// The first row.
        row: usize,
        /// The label.
        found: f32,
        /// What labels are.
        expected: String,
    },
    /// The area under a curve is not defined.
    #[error(
        "auc: {}{}, expected both classes; evaluate on more rows, or on shuffled ones",
        all_labels(*n_rows, *class, *label),
        ignored(*n_ignored)
    )]
    OneClass {
        /// How many rows have a weight above 0.
        n_rows: usize,
        /// How many rows have weight 0.
        n_ignored: usize,
        /// The label of all of them.
        class: u8,
        /// Which label of a row, from 0, where rows have several.
        label: Option<usize>,
    },
    /// A class has no row, so that areas under curves are not defined.
    #[error("{metric}: none of {n_rows} rows has class {class}, expected rows of each class; evaluate on more rows")]
    MissingClass {
        /// Which metric.
        metric: &'static str,
        /// How many rows have a weight above 0.
        n_rows: usize,
        /// The first such class.
        class: usize,
    },
    /// The numbers of outputs and labels per row are not those of a task that the metric measures.
    #[error("{metric}: {} and {} per row, expected {expected}", count(*n_outputs, "output"), count(*n_labels, "label"))]
    Columns {
        /// Which metric.
        metric: &'static str,
        /// Outputs per row.
        n_outputs: usize,
        /// Labels per row.
        n_labels: usize,
        /// What the metric takes.
        expected: String,
    },
    /// A setting of a metric has an invalid value.
    #[error("{metric}: `{setting}` is {found}, expected {expected}")]
    Setting {
        /// Which metric.
        metric: &'static str,
        /// Which setting.
        setting: &'static str,
        /// Its value.
        found: f64,
        /// The allowed values.
        expected: String,
    },
    /// The numbers of rows and of weights differ.
    #[error("{metric}: {} for {}, expected one per row", count(*found, "weight"), count(*n_rows, "row"))]
    RowWeightCount {
        /// Which metric.
        metric: &'static str,
        /// How many rows there are.
        n_rows: usize,
        /// How many weights there are.
        found: usize,
    },
    /// A row's weight is negative or not finite.
    #[error("{metric}: the weight of row {row} is {found}, expected a finite number that is not negative")]
    RowWeight {
        /// Which metric.
        metric: &'static str,
        /// The first row.
        row: usize,
        /// Its weight.
        found: f32,
    },
    /// All rows have weight 0.
    #[error("{metric}: the weights of {} are 0, expected one above 0", all_rows(*n_rows))]
    NoRowWeight {
        /// Which metric.
        metric: &'static str,
        /// How many rows there are.
        n_rows: usize,
    },
    /// No label is 1, which the metric needs.
    #[error(
        "{metric}: {}{}, expected one that is 1; evaluate on more rows, or on shuffled ones",
        all_labels(*n_rows, 0, None),
        ignored(*n_ignored)
    )]
    NoPositiveLabel {
        /// Which metric.
        metric: &'static str,
        /// How many rows have a weight above 0.
        n_rows: usize,
        /// How many rows have weight 0.
        n_ignored: usize,
    },
    /// All rows have the same label, so that nothing is explained.
    #[error("{metric}: {}{}, expected values that differ; evaluate on more rows", same_labels(*n_rows, *label), ignored(*n_ignored))]
    ConstantLabel {
        /// Which metric.
        metric: &'static str,
        /// Which label of a row, from 0, where rows have several.
        label: Option<usize>,
        /// How many rows have a weight above 0.
        n_rows: usize,
        /// How many rows have weight 0.
        n_ignored: usize,
    },
    /// An error of a metric that brisk does not know.
    #[error("{metric}: {}", with_causes(&**cause))]
    Custom {
        /// Its name.
        metric: String,
        /// Its message.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
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
