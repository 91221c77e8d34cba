//! What only importers ask of a writer.

use std::path::Path;

use super::tensors::UNKNOWN_NAMES_BYTES;
use super::{Parts, TableWriter};
use crate::format::TableMetadata;
use crate::statistics::Moments;
use crate::{Error, Schema};

/// What an importer leaves in the metadata.
#[derive(Debug)]
pub(crate) struct ImportNotes {
    /// How it was told to read the source.
    pub(crate) options: String,
    /// The features beside which the last ones say that they were missing.
    pub(crate) indicators: Vec<String>,
    /// What stands where values were missing; where that is only known at the end, as many values.
    pub(crate) imputed: Option<Vec<f32>>,
}

impl ImportNotes {
    /// Of a source in which nothing is missing.
    #[cfg(any(feature = "arrays", feature = "cifar", feature = "images"))]
    pub(crate) fn of(options: String) -> Self {
        Self { options, indicators: Vec::new(), imputed: None }
    }
}

impl TableWriter {
    /// Starts the table of an importer at `path`.
    pub(crate) fn create_import(path: &Path, schema: Schema, notes: ImportNotes) -> Result<Self, Error> {
        let ImportNotes { options, indicators, imputed } = notes;
        Self::start(path, schema, TableMetadata { import: Some(options), indicators, imputed, ..TableMetadata::default() })
    }

    /// Appends rows of which the moments are known. The parts are what the schema says.
    pub(crate) fn push_parts(&mut self, rows: Parts<'_>, moments: &Moments) -> Result<(), Error> {
        self.moments.merge(moments);
        self.append(rows)
    }

    /// Leaves room in the header for classes that are not known yet; before the first row.
    pub(crate) fn leave_room_for_classes(&mut self) -> Result<(), Error> {
        let data_start = self.out.data_start() + UNKNOWN_NAMES_BYTES as u64;
        self.out.move_to(data_start).map_err(|source| self.failed(source))
    }

    /// Makes every label, which is a `u32`, the number that stands at its place.
    pub(crate) fn renumber_labels(&mut self, numbers: Vec<u32>) {
        self.label_numbers = Some(numbers);
    }
}
