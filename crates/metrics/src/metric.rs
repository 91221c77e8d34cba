use crate::direction::Direction;
use crate::error::Error;
use crate::scored::Scored;
use std::fmt::{self, Debug};

/// A measure of a model over a set of rows, updated with one batch at a time.
///
/// The trait is open and dyn-compatible: a metric of your own implements it as the built-in ones do. It should add up in `f64`,
/// so that dividing the rows into other batches changes nothing but rounding.
///
/// # Examples
/// ```
/// use brisk_metrics::{Direction, Error, Metric, MetricValue, Scored};
///
/// /// The largest absolute error.
/// #[derive(Debug, Default)]
/// struct MaxError(Option<f32>);
///
/// impl Metric for MaxError {
///     fn name(&self) -> &str {
///         "max_error"
///     }
///     fn direction(&self) -> Direction {
///         Direction::Minimize
///     }
///     fn reset(&mut self) {
///         self.0 = None;
///     }
///     fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error> {
///         let errors = rows.outputs.iter().zip(rows.labels).map(|(output, label)| (output - label).abs());
///         self.0 = errors.chain(self.0).reduce(f32::max);
///         Ok(())
///     }
///     fn compute(&self) -> Result<MetricValue, Error> {
///         self.0.map(|error| MetricValue::Number(error.into())).ok_or(Error::NoRows { metric: "max_error" })
///     }
/// }
///
/// let rows = Scored::values(&[1.0, 5.0], &[1.5, 3.0]);
/// assert_eq!(MaxError::default().measure(&rows)?, MetricValue::Number(2.0));
/// # Ok::<(), Error>(())
/// ```
pub trait Metric: Debug + Send {
    /// The name, an identifier such as `accuracy`. A log prefixes it with the set of rows: `valid_accuracy`.
    fn name(&self) -> &str;

    /// Whether higher or lower values are better.
    fn direction(&self) -> Direction;

    /// Clears all rows.
    fn reset(&mut self);

    /// Adds the rows of a batch, without padding.
    ///
    /// # Errors
    /// Returned for outputs, labels or weights that the metric does not take; the metric is then unchanged.
    fn update(&mut self, rows: &Scored<'_>) -> Result<(), Error>;

    /// The value over all rows since the last reset.
    ///
    /// # Errors
    /// [`Error::NoRows`](crate::Error::NoRows); a value that is not defined for the rows, such as the area under a ROC curve of
    /// one class.
    fn compute(&self) -> Result<MetricValue, Error>;

    /// Whether its value is a number, so that logs can have a column for it.
    fn is_number(&self) -> bool {
        true
    }

    /// The value over `rows` only: resets, updates, computes.
    ///
    /// # Errors
    /// Those of [`Metric::update`] and [`Metric::compute`].
    fn measure(&mut self, rows: &Scored<'_>) -> Result<MetricValue, Error> {
        self.reset();
        self.update(rows)?;
        self.compute()
    }
}

/// The value of a [`Metric`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum MetricValue {
    /// One number.
    Number(f64),
    /// A square matrix, `[n, n]`, row-major: what is in row `actual` and column `predicted`, for `n` classes.
    Matrix { n: usize, values: Vec<f64> },
}

impl MetricValue {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(number) => Some(*number),
            Self::Matrix { .. } => None,
        }
    }
}

/// A number as itself, a matrix as `[[1, 0], [0, 2]]`.
impl fmt::Display for MetricValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Matrix { n, values } => {
                let row = |row: &[f64]| row.iter().map(f64::to_string).collect::<Vec<_>>().join(", ");
                let rows: Vec<String> = values.chunks((*n).max(1)).map(|values| format!("[{}]", row(values))).collect();
                write!(f, "[{}]", rows.join(", "))
            }
        }
    }
}
