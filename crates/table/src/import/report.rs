use crate::{ColumnStatistics, Dictionary, Error};

/// What an import made.
#[derive(Debug)]
#[non_exhaustive]
pub struct ImportReport {
    /// How many rows the table has.
    pub n_rows: usize,
    /// Its columns, in order.
    pub column_names: Vec<String>,
    /// What is known of each.
    pub statistics: Vec<ColumnStatistics>,
    /// The values of each categorical column.
    pub dictionaries: Vec<Dictionary>,
    /// The classes, if labels are numbers of such.
    pub classes: Vec<String>,
    /// How many rows were left out.
    pub n_skipped: u64,
    /// Why, for the first few of them.
    pub first_skipped: Vec<Error>,
}

impl ImportReport {
    /// Completes a table without named columns, of which every row was taken.
    #[cfg(any(feature = "arrays", feature = "cifar", feature = "images"))]
    pub(crate) fn finish(mut writer: crate::TableWriter, classes: Vec<String>) -> Result<Self, Error> {
        writer.set_classes(classes.clone())?;
        let statistics = writer.statistics();
        let n_rows = writer.finish()?;
        let (column_names, dictionaries) = (Vec::new(), Vec::new());
        Ok(Self { n_rows, column_names, statistics, dictionaries, classes, n_skipped: 0, first_skipped: Vec::new() })
    }
}

/// What [`import_csv_if_changed`](crate::import_csv_if_changed) did.
#[derive(Debug)]
pub enum Imported {
    /// It wrote the table.
    Written(ImportReport),
    /// Nothing: the table there was made from that file with those options.
    Unchanged,
}

/// How far an import has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// How many bytes of the file have been read, packed if it is.
    pub bytes_read: u64,
    /// How many it has.
    pub total_bytes: u64,
    /// How many rows have been written.
    pub n_rows: usize,
}
