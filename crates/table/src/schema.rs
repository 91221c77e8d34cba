use crate::dtype::DType;
use crate::error::Error;
use crate::format::MAX_RANK;
use crate::source_identity::SourceIdentity;
use crate::statistics::n_statistics;

/// The largest number of columns whose names and statistics are stored: they take half of the longest header that is read.
const MAX_STATISTICS: usize = 1 << 19;

/// The layout of the rows of a table to be written.
///
/// # Examples
/// ```
/// use brisk_table::{DType, Schema};
///
/// // 28 numbers a row, as most tables have them: `f32` features and `f32` labels.
/// let table = Schema { label_names: vec!["signal".into()], ..Schema::named((0..28).map(|i| format!("x{i}"))) };
/// assert_eq!(table.n_cols(), 28);
///
/// // Images are rows too.
/// let images = Schema { dtype: DType::U8, label_dtype: DType::U8, ..Schema::shaped(&[32, 32, 3]) };
/// assert_eq!(images.n_cols(), 3072);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// The shape of one row's features: `[28]`, or `[32, 32, 3]`; `[0]` for a table that has only categories.
    pub row_shape: Vec<usize>,
    /// The dtype of the features.
    pub dtype: DType,
    /// The dtype of the labels.
    pub label_dtype: DType,
    /// The number of labels per row, at least 1.
    pub n_labels: usize,
    /// The names of the categorical columns, or empty. If there are any, rows are pushed with
    /// [`TableWriter::push_batch`](crate::TableWriter::push_batch).
    pub categories: Vec<String>,
    /// Whether rows have weights. If so, they are pushed with [`TableWriter::push_weighted`](crate::TableWriter::push_weighted).
    pub weights: Weights,
    /// The names of the columns, all different, or empty.
    pub column_names: Vec<String>,
    /// The names of the labels, or empty.
    pub label_names: Vec<String>,
    /// The file that the table is made from.
    pub source: Option<SourceIdentity>,
}

/// Whether each row has a weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// All rows have the same weight.
    Absent,
    /// Each row has an `f32` weight.
    Present,
}

impl Schema {
    /// Rows of `f32` columns with these names, with `f32` labels.
    pub fn named<S: Into<String>>(column_names: impl IntoIterator<Item = S>) -> Self {
        let column_names: Vec<String> = column_names.into_iter().map(Into::into).collect();
        Self { row_shape: vec![column_names.len()], column_names, ..Self::shaped(&[]) }
    }

    /// Rows of this shape, `f32`, without names.
    pub fn shaped(row_shape: &[usize]) -> Self {
        Self {
            row_shape: row_shape.to_vec(),
            dtype: DType::F32,
            label_dtype: DType::F32,
            n_labels: 1,
            categories: Vec::new(),
            weights: Weights::Absent,
            column_names: Vec::new(),
            label_names: Vec::new(),
            source: None,
        }
    }

    /// The number of values per row: the product of its shape.
    pub fn n_cols(&self) -> usize {
        self.row_shape.iter().product()
    }

    /// The number of statistics: one for each column, or for each channel of an image.
    pub(crate) fn n_statistics(&self) -> usize {
        n_statistics(&self.row_shape)
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let only_categories = self.row_shape == [0] && !self.categories.is_empty();
        let has_zero = self.row_shape.contains(&0) && !only_categories;
        let problem = if self.row_shape.is_empty() || self.row_shape.len() >= MAX_RANK || has_zero {
            format!("a row has shape {:?}, expected 1 to {} dimensions, none of them 0", self.row_shape, MAX_RANK - 1)
        } else if self.row_shape.iter().try_fold(8_usize, |bytes, &n| bytes.checked_mul(n)).is_none() {
            format!("a row of shape {:?} has more values than can be counted", self.row_shape)
        } else if self.n_labels == 0 || self.n_labels.checked_mul(8).is_none() {
            format!("a row has {} labels, expected at least 1, and no more than can be counted in bytes", self.n_labels)
        } else if self.n_statistics() > MAX_STATISTICS {
            format!(
                "a row has {} columns, at most {MAX_STATISTICS} have room in a header; give rows more dimensions, as images have",
                self.n_statistics()
            )
        } else if !self.column_names.is_empty() && self.column_names.len() != self.n_cols() {
            format!("{} column names for {} columns; name all or none", self.column_names.len(), self.n_cols())
        } else if !self.label_names.is_empty() && self.label_names.len() != self.n_labels {
            format!("{} label names for {} labels; name all or none", self.label_names.len(), self.n_labels)
        } else {
            return self.check_names();
        };
        Err(Error::Schema { problem })
    }

    /// Columns are found by their names.
    fn check_names(&self) -> Result<(), Error> {
        match first_twice(self.categories.iter().chain(&self.column_names)) {
            Some(twice) => Err(Error::Schema { problem: format!("two columns are named `{twice}`; rename one of them") }),
            None => Ok(()),
        }
    }
}

/// The first of the names, in their order as text, that is given twice.
pub(crate) fn first_twice<'a>(names: impl IntoIterator<Item = &'a String>) -> Option<&'a String> {
    let mut names: Vec<&String> = names.into_iter().collect();
    names.sort_unstable();
    names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}
