//! Methods of the writer that only importers use.

use std::path::Path;

use super::tensors::UNKNOWN_NAMES_BYTES;
use super::{Parts, TableWriter};
use crate::error::Error;
use crate::format::{RecordedSettings, TableMetadata};
use crate::schema::Schema;
use crate::statistics::Moments;

/// What an importer records in the metadata.
#[derive(Debug)]
pub(crate) struct ImportNotes {
    /// The options with which it read the source.
    pub(crate) options: String,
    /// The features that have an indicator. The indicators are the last features.
    pub(crate) indicators: Vec<String>,
    /// The values that replace missing values. While the source is still being read, zeros of the same number reserve the space
    /// for them.
    pub(crate) imputed: Option<Vec<f32>>,
    pub(crate) settings: RecordedSettings,
}

impl ImportNotes {
    /// For a source without missing values.
    #[cfg(any(feature = "arrays", feature = "cifar", feature = "images"))]
    pub(crate) fn of(options: String) -> Self {
        Self { options, indicators: Vec::new(), imputed: None, settings: RecordedSettings::default() }
    }
}

impl TableWriter {
    /// Starts the table of an importer at `path`.
    pub(crate) fn create_import(path: &Path, schema: Schema, notes: ImportNotes) -> Result<Self, Error> {
        let ImportNotes { options, indicators, imputed, settings } = notes;
        let import = Some(options);
        Self::start(path, schema, TableMetadata { import, indicators, imputed, settings, ..TableMetadata::default() })
    }

    /// Appends rows whose moments are known. The parts must match the schema.
    pub(crate) fn push_parts(&mut self, rows: Parts<'_>, moments: &Moments) -> Result<(), Error> {
        self.moments.merge(moments);
        self.append(rows)
    }

    /// Leaves room in the header for classes that are not known yet; called before the first row.
    pub(crate) fn leave_room_for_classes(&mut self) -> Result<(), Error> {
        let data_start = self.out.data_start() + UNKNOWN_NAMES_BYTES as u64;
        self.out.move_to(data_start).map_err(|source| self.failed(source))
    }

    /// Replaces every label, which must be a `u32`, by the number at that index.
    pub(crate) fn renumber_labels(&mut self, numbers: Vec<u32>) {
        self.label_numbers = Some(numbers);
    }
}
