use std::cell::Cell;
use std::path::{Path, PathBuf};

use super::inputs::check_dest;
use crate::destination::{Destination, Output};
use crate::dictionary::Dictionary;
use crate::error::Error;
use crate::format::TableMetadata;
use crate::schema::Schema;
use crate::statistics::{ColumnStatistics, Moments};
use crate::writer::{Parts, Written, means_of};

/// The destination of an import, and what the first reading of the source has found, if it is read twice.
pub(crate) struct Dest<'a> {
    to: &'a Destination,
    found: Option<Found>,
    is_read_twice: Cell<bool>,
}

/// What is only known once all rows have been read, but recorded by every shard.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) dictionaries: Vec<Dictionary>,
    pub(crate) classes: Vec<String>,
    /// The means that take the place of missing values.
    pub(crate) imputed: Option<Vec<f32>>,
    pub(crate) n_rows: usize,
}

impl<'a> Dest<'a> {
    pub(crate) fn new(to: &'a Destination, found: Option<Found>) -> Self {
        Self { to, is_read_twice: Cell::new(found.is_some()), found }
    }

    pub(crate) fn destination(&self) -> &'a Destination {
        self.to
    }

    pub(crate) fn found(&self) -> Option<&Found> {
        self.found.as_ref()
    }

    /// Whether the source is read twice, as far as that is known.
    pub(super) fn is_read_twice(&self) -> bool {
        self.is_read_twice.get()
    }

    /// Refuses to write to a file that the import reads.
    pub(crate) fn check_differs<'i>(&self, inputs: impl IntoIterator<Item = &'i Path>) -> Result<(), Error> {
        self.to.file().map_or(Ok(()), |file| check_dest(file, inputs))
    }
}

/// Whether an importer knows what a table records before its rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Names {
    /// All of it is given.
    Known,
    /// Dictionaries, classes or means are only known after the last row.
    FoundInRows,
}

/// Takes the rows of an import. Those of shards, which record what is only known after the last row, are looked at first and
/// written when the source is read again.
#[derive(Debug)]
pub(crate) struct ImportWriter {
    dest: PathBuf,
    schema: Schema,
    moments: Moments,
    n_rows: usize,
    to: To,
}

#[derive(Debug)]
enum To {
    Output(Output),
    /// Nowhere.
    Nothing(Found),
}

impl ImportWriter {
    pub(crate) fn create(dest: &Dest<'_>, schema: Schema, mut metadata: TableMetadata, names: Names) -> Result<Self, Error> {
        schema.check()?;
        let (moments, shown) = (Moments::new(schema.n_statistics()), dest.to.shown());
        let to = match dest.found() {
            None if dest.to.is_sharded() && names == Names::FoundInRows => {
                dest.is_read_twice.set(true);
                To::Nothing(Found { dictionaries: Vec::new(), classes: Vec::new(), imputed: None, n_rows: 0 })
            }
            found => {
                if let Some(found) = found {
                    metadata.dictionaries.clone_from(&found.dictionaries);
                    metadata.classes.clone_from(&found.classes);
                    metadata.imputed.clone_from(&found.imputed);
                }
                To::Output(dest.to.open(schema.clone(), metadata)?)
            }
        };
        Ok(Self { dest: shown, schema, moments, n_rows: 0, to })
    }

    pub(crate) fn row_shape(&self) -> &[usize] {
        &self.schema.row_shape
    }

    /// The path or URL of the table.
    pub(crate) fn path(&self) -> &Path {
        &self.dest
    }

    /// Appends rows whose parts match the schema and are aligned for their types. `moments` are theirs, if they are known.
    pub(crate) fn push(&mut self, rows: Parts<'_>, moments: Option<&Moments>) -> Result<(), Error> {
        if let To::Output(Output::File(writer, _)) = &mut self.to {
            return writer.push_stored(rows, moments);
        }
        let mut own = Moments::new(self.moments.n_cols());
        let moments = moments.unwrap_or_else(|| {
            own.add_stored(self.schema.dtype, rows.features);
            &own
        });
        self.moments.merge(moments);
        self.n_rows += rows.n_rows(&self.schema);
        match &mut self.to {
            To::Output(output) => output.push(rows, Some(moments)),
            To::Nothing(_) => Ok(()),
        }
    }

    pub(crate) fn n_rows(&self) -> usize {
        match &self.to {
            To::Output(output) => output.n_rows(),
            To::Nothing(_) => self.n_rows,
        }
    }

    /// The statistics of each column so far.
    pub(crate) fn statistics(&self) -> Vec<ColumnStatistics> {
        match &self.to {
            To::Output(Output::File(writer, _)) => writer.statistics(),
            _ => self.moments.statistics(),
        }
    }

    pub(crate) fn set_dictionaries(&mut self, dictionaries: Vec<Dictionary>) -> Result<(), Error> {
        match &mut self.to {
            To::Output(Output::File(writer, _)) => writer.set_dictionaries(dictionaries),
            To::Output(Output::Shards(writer)) => writer.set_dictionaries(dictionaries),
            To::Nothing(found) => {
                found.dictionaries = dictionaries;
                Ok(())
            }
        }
    }

    pub(crate) fn set_classes(&mut self, names: Vec<String>) -> Result<(), Error> {
        match &mut self.to {
            To::Output(Output::File(writer, _)) => writer.set_classes(names),
            To::Output(Output::Shards(writer)) => writer.set_classes(names),
            To::Nothing(found) => {
                found.classes = names;
                Ok(())
            }
        }
    }

    /// Leaves room in the header of a file for classes that are not known yet; called before the first row.
    pub(crate) fn leave_room_for_classes(&mut self) -> Result<(), Error> {
        match &mut self.to {
            To::Output(Output::File(writer, _)) => writer.leave_room_for_classes(),
            _ => Ok(()),
        }
    }

    /// Replaces every label of a file, which must be a `u32`, by the number at that index.
    pub(crate) fn renumber_labels(&mut self, numbers: Vec<u32>) {
        if let To::Output(Output::File(writer, _)) = &mut self.to {
            writer.renumber_labels(numbers);
        }
    }

    /// Replaces NaN by the mean of its column in the first `n_columns` features, and records the means. In shards, they have
    /// taken the place of NaN already.
    pub(crate) fn impute_means(&mut self, n_columns: usize) -> Result<(), Error> {
        match &mut self.to {
            To::Output(Output::File(writer, _)) => writer.impute_means(n_columns, &self.dest),
            To::Output(Output::Shards(_)) => Ok(()),
            To::Nothing(found) => {
                let means = means_of(&mut self.moments, &self.schema, self.n_rows, n_columns);
                found.imputed = Some(means.map_err(|reason| reason.at(&self.dest))?.0);
                Ok(())
            }
        }
    }

    /// Completes the table, or returns what was found in the rows for one that is written next.
    pub(crate) fn finish(self) -> Result<(Written, Option<Found>), Error> {
        let n_rows = self.n_rows;
        match self.to {
            To::Output(output) => Ok((output.finish()?, None)),
            To::Nothing(found) => Ok((Written { n_rows, n_bytes: 0 }, Some(Found { n_rows, ..found }))),
        }
    }
}
