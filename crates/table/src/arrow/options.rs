use crate::{ColumnOptions, Error};

/// How to read Arrow and Parquet files.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ArrowOptions {
    /// What the columns are for, and what becomes of values that are not what they should be. A column of lists of a fixed size is as
    /// many columns, `NAME_0`, `NAME_1` and so on; it is left out by its own name.
    pub columns: ColumnOptions,
    /// How many threads convert; 0 for one a core. The table is the same for any number.
    pub n_threads: usize,
}

impl ArrowOptions {
    /// What decides the table, as text that can be kept and compared.
    pub(super) fn fingerprint(&self, format: &str) -> Result<String, Error> {
        let like = self.columns.like_fingerprint()?;
        Ok(format!("{format} {:?}{like}", Self { n_threads: 0, ..self.clone() }))
    }
}
