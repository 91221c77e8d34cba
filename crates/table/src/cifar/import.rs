use std::io::Read;
use std::path::Path;

use super::CifarOptions;
use super::batches::Batches;
use crate::destination::Progress;
use crate::dtype::DType;
use crate::error::{Error, SourceError};
use crate::format::TableMetadata;
use crate::import::{Dest, ImportReport, ImportWriter, Names, Origin, ReadSource};
use crate::schema::Schema;
use crate::writer::Parts;

/// The number of records read at a time: less than a megabyte.
const CHUNK_RECORDS: usize = 256;

const SIDE: usize = 32;
const N_CHANNELS: usize = 3;
const PLANE: usize = SIDE * SIDE;

impl ReadSource for CifarOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        Origin::new(Batches::find(path, *self)?.identity, self, None)
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        let mut batches = Batches::find(path, *self)?;
        let origin = Origin::new(batches.identity.clone(), self, None)?;
        dest.check_differs(batches.files())?;
        let schema = Schema {
            dtype: DType::U8,
            label_dtype: DType::U8,
            source: Some(origin.source),
            ..Schema::shaped(&[SIDE, SIDE, N_CHANNELS])
        };
        let classes = batches.class_names(self.labels)?;
        let metadata = TableMetadata { import: Some(origin.options), classes: classes.clone(), ..TableMetadata::default() };
        let mut writer = ImportWriter::create(dest, schema, metadata, Names::Known)?;
        let total_bytes = batches.identity.n_bytes;
        let mut rows = Records::default();
        for index in 0..batches.len() {
            batches.with(index, |batches, name, bytes| {
                let mut done = 0;
                while rows.read(path, name, bytes, *self, done)? {
                    writer.push(Parts { features: &rows.pixels, labels: &rows.labels, categories: &[], weights: &[] }, None)?;
                    done += rows.labels.len() as u64;
                    progress(Progress { bytes_read: batches.n_read(), total_bytes, n_rows: writer.n_rows() });
                }
                Ok(())
            })?;
        }
        if writer.n_rows() == 0 {
            return Err(SourceError::NoRows { found: "an empty file" }.at(path));
        }
        ImportReport::finish(writer, classes)
    }
}

/// Some records, as the bytes of the file and as they are stored in the table.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    pixels: Vec<u8>,
    labels: Vec<u8>,
}

impl Records {
    /// Reads the next records, which follow `done` others. Returns whether there were any.
    fn read(&mut self, path: &Path, name: &str, from: &mut dyn Read, options: CifarOptions, done: u64) -> Result<bool, Error> {
        let fail = |reason: SourceError| Err(reason.at(path));
        let facts = options.labels.facts();
        let record_bytes = facts.n_bytes + N_CHANNELS * PLANE;
        self.bytes.clear();
        let limit = (CHUNK_RECORDS * record_bytes) as u64;
        let read = from.take(limit).read_to_end(&mut self.bytes);
        read.map_err(Error::io(path, "read or unpack"))?;

        let (n_records, rest) = (self.bytes.len() / record_bytes, self.bytes.len() % record_bytes);
        if rest != 0 {
            return fail(SourceError::unexpected(
                format!("`{name}`, record {}", done + n_records as u64),
                format!("{rest} bytes"),
                format!("{record_bytes}, the file is cut short or of the other data set"),
                facts.expected.remedies,
            ));
        }
        self.pixels.resize(n_records * N_CHANNELS * PLANE, 0);
        self.labels.clear();
        let images = self.pixels.chunks_exact_mut(N_CHANNELS * PLANE);
        for (i, (record, image)) in self.bytes.chunks_exact(record_bytes).zip(images).enumerate() {
            let (labels, planes) = record.split_at(facts.n_bytes);
            let label = labels[facts.index];
            if label >= facts.n_classes {
                return fail(SourceError::Value {
                    row: done + i as u64,
                    column: format!("the label in `{name}`"),
                    found: label.to_string(),
                    expected: facts.expected,
                });
            }
            self.labels.push(label);
            let (red, others) = planes.split_at(PLANE);
            let (green, blue) = others.split_at(PLANE);
            for (pixel, ((&r, &g), &b)) in image.as_chunks_mut().0.iter_mut().zip(red.iter().zip(green).zip(blue)) {
                *pixel = [r, g, b];
            }
        }
        Ok(n_records > 0)
    }
}
