use std::path::{Path, PathBuf};

use super::FeatureDType;
use crate::dtype::DType;
use crate::error::{Error, SourceError};
use crate::format::{RecordedSettings, TableMetadata};
use crate::import_format::ImportSetting;
use crate::parts::Opened;
use crate::schema::Weights;

/// The properties of the table to match that an import uses.
#[derive(Debug)]
pub(crate) struct Like {
    path: PathBuf,
    pub(crate) metadata: TableMetadata,
    pub(crate) n_labels: usize,
    pub(crate) weights: Weights,
    #[cfg(any(feature = "arrays", feature = "images"))]
    pub(crate) row_shape: Vec<usize>,
    stored: DType,
}

impl Like {
    /// Reads the header of the table at `path`.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let parts = Opened::at(path)?.parts;
        Ok(Self {
            path: path.to_owned(),
            n_labels: parts.n_labels(),
            weights: parts.row_weights(),
            #[cfg(any(feature = "arrays", feature = "images"))]
            row_shape: parts.features.shape[1..].to_vec(),
            stored: parts.features.dtype,
            metadata: parts.metadata,
        })
    }

    /// Like [`read`](Self::read), for a source with named columns.
    pub(crate) fn with_columns(path: &Path) -> Result<Self, Error> {
        let like = Self::read(path)?;
        if FeatureDType::from_dtype(like.stored).is_none() {
            return Err(like.wrong("its features are neither F32, F16 nor U8"));
        }
        if like.metadata.column_names.is_empty() && like.metadata.dictionaries.is_empty() {
            return Err(like.wrong("it does not name its columns"));
        }
        Ok(like)
    }

    /// The error for a table that this import cannot match.
    pub(crate) fn wrong(&self, problem: &str) -> Error {
        SourceError::roles(format!("this import cannot match the table: {problem}"), &[]).at(&self.path)
    }

    pub(crate) fn dtype(&self) -> FeatureDType {
        FeatureDType::from_dtype(self.stored).unwrap_or_default()
    }

    /// Checks that an array has rows of the table's shape and type.
    #[cfg(feature = "arrays")]
    pub(crate) fn check_rows(&self, row_shape: &[usize], dtype: DType) -> Result<(), Error> {
        if (row_shape, dtype) == (&self.row_shape, self.stored) {
            return Ok(());
        }
        Err(self.wrong(&format!("its rows are {} {:?}, those of the source {dtype} {row_shape:?}", self.stored, self.row_shape)))
    }

    /// Checks that a source without named columns, whose rows have these weights, can be like the table.
    #[cfg(any(feature = "arrays", feature = "csv", feature = "images"))]
    pub(crate) fn check_unnamed(&self, weights: Weights) -> Result<(), Error> {
        let RecordedSettings { missing_values, offsets, .. } = &self.metadata.settings;
        match (weights, self.weights) {
            (Weights::Present, Weights::Absent) => return Err(self.wrong("it has no weights, weights were given")),
            (Weights::Absent, Weights::Present) => return Err(self.wrong("it has weights, none were given")),
            _ => {}
        }
        if let Some((column, offset)) = offsets.first() {
            let problem = format!("{offset} was subtracted from its column `{column}`, which this format does not support");
            return Err(self.wrong(&problem));
        }
        if let Some(word) = missing_values.first() {
            let problem = format!("in its columns {word:?} counted as missing, which this format does not support");
            return Err(self.wrong(&problem));
        }
        Ok(())
    }

    /// Whether the table replaces an option of the import.
    pub(crate) fn determines(&self, setting: ImportSetting) -> bool {
        use ImportSetting::*;
        match setting {
            Categorical | Indicators | DType | Channels | Size => true,
            Labels => !self.metadata.label_names.is_empty(),
            LabelKind | FirstLabel => !self.metadata.classes.is_empty(),
            FillMissing | KeepMissing => self.metadata.imputed.is_some(),
            _ => false,
        }
    }

    /// The features that are columns of a source: all except the indicators.
    pub(crate) fn features(&self) -> &[String] {
        &self.metadata.column_names[..self.metadata.column_names.len().saturating_sub(self.metadata.indicators.len())]
    }
}
