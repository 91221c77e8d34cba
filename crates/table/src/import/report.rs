use std::fmt;

use super::{Digits, Found, ImportWarning};
use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::statistics::ColumnStatistics;
#[cfg(any(feature = "arrays", feature = "cifar", feature = "images"))]
use crate::writer::Written;

/// The result of an import. Its `Debug` form has the sizes of dictionaries and classes, not their values.
#[derive(Default)]
#[non_exhaustive]
pub struct ImportReport {
    /// The number of rows in the table.
    pub n_rows: usize,
    /// The size of its file, or of all its shards, in bytes.
    pub n_bytes: u64,
    /// The shape of a row of features.
    pub row_shape: Vec<usize>,
    /// Its columns, in order.
    pub column_names: Vec<String>,
    /// The statistics of each column.
    pub statistics: Vec<ColumnStatistics>,
    /// The columns that are labels. Empty for formats without named columns.
    pub label_names: Vec<String>,
    /// The values of each categorical column.
    pub dictionaries: Vec<Dictionary>,
    /// The classes, if labels are class numbers.
    pub classes: Vec<String>,
    /// The file of each row, by its path below the folder or in the archive, for rows that are images of a folder or an archive;
    /// empty for other formats.
    pub files: Vec<String>,
    /// The number of rows that were skipped.
    pub n_skipped: u64,
    /// The number of blank lines between the rows of a CSV file, which are no rows: in a file of one column they may be meant as
    /// missing values.
    pub n_blank_lines: u64,
    /// Why rows were skipped, for the first few of them.
    pub first_skipped: Vec<Error>,
    /// All columns of the source, in its order, those that were left out included. Empty for formats without named columns.
    pub source_columns: Vec<String>,
    /// The columns that were left out because they are the index of a data frame; see
    /// [`ColumnOptions::keep_index`](crate::ColumnOptions::keep_index).
    pub index_columns: Vec<String>,
    /// What the columns lost when they were rounded to `f32`, one for each of the first columns: all except the indicators. Empty
    /// for formats without named columns.
    pub digits: Vec<Digits>,
    /// The same for labels that are numbers, one for each label.
    pub label_digits: Vec<Digits>,
    /// What is probably not as it was meant.
    pub warnings: Vec<ImportWarning>,
    /// What the second reading of the source needs, if that is to follow.
    pub(crate) found: Option<Found>,
}

impl fmt::Debug for ImportReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { n_rows, column_names, dictionaries, classes, n_skipped, first_skipped, index_columns, warnings, .. } = self;
        f.debug_struct("ImportReport")
            .field("n_rows", n_rows)
            .field("n_columns", &column_names.len())
            .field("n_dictionaries", &dictionaries.len())
            .field("n_classes", &classes.len())
            .field("n_skipped", n_skipped)
            .field("first_skipped", first_skipped)
            .field("index_columns", index_columns)
            .field("warnings", warnings)
            .finish_non_exhaustive()
    }
}

impl ImportReport {
    /// Completes a table without named columns, for which no row was skipped.
    #[cfg(any(feature = "arrays", feature = "cifar", feature = "images"))]
    pub(crate) fn finish(mut writer: super::ImportWriter, classes: Vec<String>) -> Result<Self, Error> {
        writer.set_classes(classes.clone())?;
        let statistics = writer.statistics();
        let row_shape = writer.row_shape().to_vec();
        let (Written { n_rows, n_bytes }, found) = writer.finish()?;
        Ok(Self { n_rows, n_bytes, row_shape, found, statistics, classes, ..Self::default() })
    }
}

/// What an import did that is left out if nothing has changed, such as [`import_if_changed`](crate::import_if_changed).
#[derive(Debug)]
pub enum Imported {
    /// It wrote the table.
    Written(Box<ImportReport>),
    /// Nothing: the table there was made from that file with those options.
    Unchanged,
}
