use crate::error::Error;
use crate::import::ColumnOptions;

/// How to read Arrow and Parquet files.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ArrowOptions {
    /// The roles of the columns, and how invalid values are treated. A column of lists of a fixed size counts as one column per element, `NAME_0`,
    /// `NAME_1` and so on; dropping `NAME` drops all of them.
    pub columns: ColumnOptions,
    /// The number of threads that convert, or 0 for one per core. The table does not depend on it.
    pub n_threads: usize,
}

impl ArrowOptions {
    /// Everything that determines the table, as text that can be stored and compared.
    pub(super) fn fingerprint(&self, format: &str) -> Result<String, Error> {
        let like = self.columns.like_fingerprint()?;
        Ok(format!("{format} {:?}{like}", Self { n_threads: 0, ..self.clone() }))
    }
}
