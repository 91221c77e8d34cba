use std::path::Path;

use super::FeatureDType;
use crate::{Dictionary, Error, parts};

/// The properties of the table to match that an import uses.
#[derive(Debug)]
pub(crate) struct Like {
    column_names: Vec<String>,
    /// The features that have an indicator; the indicators are the last columns.
    pub(crate) indicators: Vec<String>,
    pub(crate) label_names: Vec<String>,
    pub(crate) n_labels: usize,
    pub(crate) dictionaries: Vec<Dictionary>,
    pub(crate) classes: Vec<String>,
    /// The values that replace missing values, one for each feature except the indicators.
    pub(crate) imputed: Option<Vec<f32>>,
    pub(crate) dtype: FeatureDType,
}

impl Like {
    /// Reads the header of the table at `path`.
    ///
    /// # Errors
    /// As for [`Table::open`](crate::Table::open); [`Error::ColumnRoles`] for a table that does not name its columns, or whose features
    /// have a type that importers do not write.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let (metadata, dtype, n_labels) = parts::read_metadata(path)?;
        let wrong = |problem: &str| Error::ColumnRoles { path: path.to_owned(), problem: problem.to_owned() };
        let Some(dtype) = FeatureDType::from_dtype(dtype) else {
            return Err(wrong("no import can match this table: its features are neither F32, F16 nor U8"));
        };
        if metadata.column_names.is_empty() && metadata.dictionaries.is_empty() {
            return Err(wrong("no import can match this table: it does not name its columns"));
        }
        Ok(Self {
            column_names: metadata.column_names,
            indicators: metadata.indicators,
            label_names: metadata.label_names,
            n_labels,
            dictionaries: metadata.dictionaries,
            classes: metadata.classes,
            imputed: metadata.imputed,
            dtype,
        })
    }

    /// The features that are columns of a source: all except the indicators.
    pub(crate) fn features(&self) -> &[String] {
        &self.column_names[..self.column_names.len().saturating_sub(self.indicators.len())]
    }
}
