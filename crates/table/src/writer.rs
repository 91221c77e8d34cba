mod blocks;
#[cfg(feature = "import")]
#[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "each importer uses its own part of it"))]
mod import;
#[cfg(feature = "import")]
#[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "each importer uses its own part of it"))]
mod impute;
mod row_batch;
mod spool;
mod tensors;

use std::io;
use std::ops::Range;
use std::path::Path;

use blocks::Blocks;
use brisk_atomic_file::{AtomicFile, special_file};
#[cfg(feature = "import")]
pub(crate) use impute::means_of;
pub use row_batch::RowBatch;
use spool::Spool;
use tensors::{longest_header, tensors};

use crate::dictionary::Dictionary;
use crate::dtype::{DType, Element};
use crate::error::Error;
use crate::format::{self, CATEGORIES, FEATURES, LABELS, MAX_HEADER_BYTES, PADDING, TableMetadata, WEIGHTS};
use crate::schema::{Schema, Weights, first_twice};
use crate::statistics::{ColumnStatistics, Moments};
use brisk_atomic_file::listed;

/// The bytes of rows as they are written to the file, and the codes of their categories.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    pub(crate) features: &'a [u8],
    pub(crate) categories: &'a [u32],
    pub(crate) labels: &'a [u8],
    pub(crate) weights: &'a [f32],
}

impl Parts<'_> {
    pub(crate) fn n_rows(&self, schema: &Schema) -> usize {
        self.labels.len() / (schema.label_dtype.n_bytes() * schema.n_labels)
    }

    /// Some of these `n_rows` rows.
    pub(crate) fn slice(&self, rows: &Range<usize>, n_rows: usize) -> Parts<'_> {
        fn some<'a, T>(part: &'a [T], rows: &Range<usize>, n_rows: usize) -> &'a [T] {
            let of_row = part.len() / n_rows;
            &part[rows.start * of_row..rows.end * of_row]
        }
        Parts {
            features: some(self.features, rows, n_rows),
            categories: some(self.categories, rows, n_rows),
            labels: some(self.labels, rows, n_rows),
            weights: some(self.weights, rows, n_rows),
        }
    }
}

/// The size of a table that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The number of rows.
    pub n_rows: usize,
    /// The size of its file, or of all its shards, in bytes.
    pub n_bytes: u64,
}

/// Writes a table row by row; the number of rows need not be known, and memory use does not grow with the table.
///
/// Rows go to an [`AtomicFile`]: [`finish`](Self::finish) syncs it to disk and renames it, so that a reader sees the old table or
/// the new one and never a part of either; a map of the old table keeps its content. If the writer is dropped without `finish`,
/// or on an error, it removes what it wrote. Files left by a killed process are removed by the next writer of the same path.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ramp.safetensors");
/// use brisk_table::{Schema, TableWriter};
///
/// let mut writer = TableWriter::create(&path, Schema::named(["x", "x²"]))?;
/// for i in 0..1000 {
///     let x = i as f32;
///     writer.push(&[x, x * x], &[(i % 2) as f32])?;
/// }
/// assert!(!path.exists());
/// assert_eq!(writer.finish()?, 1000);
/// assert!(path.exists());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TableWriter {
    out: Blocks,
    schema: Schema,
    metadata: TableMetadata,
    n_rows: usize,
    labels: Spool,
    categories: Spool,
    weights: Spool,
    /// The largest code of each categorical column.
    largest_codes: Vec<u32>,
    /// The new label for each old one, which must then be a `u32`.
    label_numbers: Option<Vec<u32>>,
    moments: Moments,
}

impl TableWriter {
    /// Starts a table that [`finish`](Self::finish) puts at `path`.
    ///
    /// # Errors
    /// [`Error::Schema`] for an invalid schema; [`Error::NotAFile`] if `path` is a folder, pipe or device;
    /// [`Error::Write`] if no file can be created in that folder.
    pub fn create(path: impl AsRef<Path>, schema: Schema) -> Result<Self, Error> {
        Self::create_with(path.as_ref(), schema, TableMetadata::default())
    }

    /// The same, with more that the table records.
    pub(crate) fn create_with(path: &Path, schema: Schema, metadata: TableMetadata) -> Result<Self, Error> {
        schema.check()?;
        if let Some(found) = special_file(path) {
            return Err(Error::NotAFile { path: path.to_owned(), found });
        }
        let file = AtomicFile::create(path).map_err(Error::write(path))?;
        Self::start_in(file, schema, metadata)
    }

    /// Starts a shard, at a path that no other writer has ever used.
    pub(crate) fn create_shard(path: &Path, schema: Schema, metadata: TableMetadata) -> Result<Self, Error> {
        schema.check()?;
        let file = AtomicFile::create_first(path);
        let file = file.map_err(Error::write(path))?;
        Self::start_in(file, schema, metadata)
    }

    fn start_in(file: AtomicFile, schema: Schema, metadata: TableMetadata) -> Result<Self, Error> {
        let metadata = TableMetadata {
            is_ours: true,
            column_names: schema.column_names.clone(),
            label_names: schema.label_names.clone(),
            source: schema.source.clone(),
            ..metadata
        };
        let data_start = longest_header(&schema, &metadata);
        let mut writer = Self {
            out: Blocks::new(file),
            moments: Moments::new(schema.n_statistics()),
            largest_codes: vec![0; schema.categories.len()],
            label_numbers: None,
            schema,
            metadata,
            n_rows: 0,
            labels: Spool::default(),
            categories: Spool::default(),
            weights: Spool::default(),
        };
        let header_to_be = writer.out.skip_to(data_start as u64);
        header_to_be.map_err(|source| writer.failed(source))?;
        Ok(writer)
    }

    /// Appends rows; large slices and single rows are both fine.
    ///
    /// # Shapes
    /// `features`: `[n, n_cols]`, `labels`: `[n, n_labels]`, row-major.
    /// # Errors
    /// [`Error::WrongDType`] and [`Error::Length`] if they do not match the schema; the writer is then unchanged.
    /// [`Error::Write`] if the disk is full or fails; the writer must then be dropped.
    pub fn push<F: Element, L: Element>(&mut self, features: &[F], labels: &[L]) -> Result<(), Error> {
        self.check_has("weights", self.schema.weights == Weights::Present, "push_weighted")?;
        self.check_has("categories", !self.schema.categories.is_empty(), "push_batch")?;
        self.push_batch(RowBatch { features, labels, ..RowBatch::default() })
    }

    /// Like [`push`](Self::push), for a table whose schema has [`Weights::Present`]; `weights`: `[n]`.
    pub fn push_weighted<F: Element, L: Element>(&mut self, features: &[F], labels: &[L], weights: &[f32]) -> Result<(), Error> {
        self.check_has("categories", !self.schema.categories.is_empty(), "push_batch")?;
        self.push_batch(RowBatch { features, labels, weights, ..RowBatch::default() })
    }

    /// Like [`push`](Self::push), for rows with any parts.
    ///
    /// # Examples
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("people.safetensors");
    /// use brisk_table::{Dictionary, RowBatch, Schema, Table, TableWriter};
    ///
    /// let schema = Schema { categories: vec!["workclass".into()], ..Schema::named(["age"]) };
    /// let mut writer = TableWriter::create(&path, schema)?;
    /// let rows = RowBatch { features: &[39.0_f32, 50.0], categories: &[1, 0], labels: &[0.0_f32, 1.0], ..RowBatch::default() };
    /// writer.push_batch(rows)?;
    /// // Which values there are may only be known at the end.
    /// writer.set_dictionaries(vec![Dictionary::new("workclass", ["State-gov"])?])?;
    /// writer.finish()?;
    ///
    /// let table = Table::open(&path)?;
    /// assert_eq!(table.categories(0..2)?, [1, 0]);
    /// assert_eq!(table.dictionaries()[0].value(1), Some("State-gov"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn push_batch<F: Element, L: Element>(&mut self, rows: RowBatch<'_, F, L>) -> Result<(), Error> {
        self.check(&rows)?;
        self.moments.add(rows.features);
        self.append(Parts {
            features: bytemuck::cast_slice(rows.features),
            categories: rows.categories,
            labels: bytemuck::cast_slice(rows.labels),
            weights: rows.weights,
        })
    }

    /// Appends rows whose parts match the schema and are aligned for their types. `moments` are theirs, if they are known.
    pub(crate) fn push_stored(&mut self, rows: Parts<'_>, moments: Option<&Moments>) -> Result<(), Error> {
        let stored = self.schema.dtype;
        match moments {
            Some(moments) => self.moments.merge(moments),
            None if self.moments.add_stored(stored, rows.features) => {}
            None => return Err(Error::NotGathered { path: self.out.file.path().to_owned(), tensor: FEATURES, stored }),
        }
        self.append(rows)
    }

    fn append(&mut self, rows: Parts<'_>) -> Result<(), Error> {
        for codes in rows.categories.chunks_exact(self.largest_codes.len().max(1)) {
            for (largest, &code) in self.largest_codes.iter_mut().zip(codes) {
                *largest = code.max(*largest);
            }
        }
        let written = (|| {
            self.out.write(rows.features)?;
            self.labels.write(&self.out.file, rows.labels)?;
            self.categories.write(&self.out.file, bytemuck::cast_slice(rows.categories))?;
            self.weights.write(&self.out.file, bytemuck::cast_slice(rows.weights))
        })();
        written.map_err(|source| self.failed(source))?;
        self.n_rows += rows.n_rows(&self.schema);
        Ok(())
    }

    /// Sets the dictionaries of the categorical columns, one for each in the order of the schema. A table with categories needs
    /// them before it can be finished.
    ///
    /// # Errors
    /// [`Error::Schema`] if they are not the dictionaries of those columns; [`Error::TooManyValues`] if they do not fit into a
    /// header.
    pub fn set_dictionaries(&mut self, dictionaries: Vec<Dictionary>) -> Result<(), Error> {
        if !dictionaries.iter().map(Dictionary::name).eq(&self.schema.categories) {
            let given: Vec<&str> = dictionaries.iter().map(Dictionary::name).collect();
            let (given, columns) = (listed(&given), listed(&self.schema.categories));
            let problem = format!("dictionaries of {given} for categorical columns {columns}; give each its own");
            return Err(Error::Schema { problem });
        }
        self.metadata.dictionaries = dictionaries;
        // The least space that they take, to report the error before they are encoded.
        let values = self.metadata.dictionaries.iter().flat_map(Dictionary::values);
        let n_bytes: usize = values.map(|value| value.len() + "\"\",".len()).sum();
        if n_bytes as u64 > MAX_HEADER_BYTES {
            return Err(self.too_many_values(n_bytes as u64));
        }
        Ok(())
    }

    /// Sets the names of the classes, if labels are class numbers counted from 0.
    ///
    /// # Errors
    /// [`Error::Schema`] if a class is named twice.
    pub fn set_classes<S: Into<String>>(&mut self, names: impl IntoIterator<Item = S>) -> Result<(), Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        if let Some(twice) = first_twice(&names) {
            return Err(Error::Schema { problem: format!("class {twice:?} is named twice; each has a number of its own") });
        }
        self.metadata.classes = names;
        Ok(())
    }

    /// The number of rows that were pushed.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// The statistics of each column so far, or of each channel as in [`Table::statistics`](crate::Table::statistics).
    pub fn statistics(&self) -> Vec<ColumnStatistics> {
        self.moments.statistics()
    }

    /// Completes the table: labels, weights, checksums and header, synced to disk and renamed. Returns the number of rows.
    ///
    /// # Errors
    /// [`Error::Schema`] if categories have no dictionaries, or codes beyond them; [`Error::TooManyValues`]; [`Error::Write`].
    /// Then nothing is left behind, and an old table at the path is unchanged. [`Error::NotReplaced`] if the new table is
    /// complete but the old one cannot be replaced, as on Windows while a program has it mapped; the new one is kept under the
    /// name in the error.
    pub fn finish(self) -> Result<usize, Error> {
        self.complete().map(|written| written.n_rows)
    }

    /// Like [`finish`](Self::finish), with the size of the file.
    pub(crate) fn complete(mut self) -> Result<Written, Error> {
        self.check_codes()?;
        self.metadata.statistics = Some(self.moments.statistics());
        let header = self.place_header()?;
        self.write_rest(&header).map_err(|source| self.failed(source))?;
        let (path, n_bytes) = (self.out.file.path().to_owned(), self.out.n_bytes());
        self.out.file.publish().map_err(|error| Error::from_publishing(error, path, n_bytes))?;
        Ok(Written { n_rows: self.n_rows, n_bytes })
    }

    /// Encodes the header, after making enough room for it before the data.
    fn place_header(&mut self) -> Result<Vec<u8>, Error> {
        let (tensors, metadata) = (tensors(&self.schema, self.n_rows), self.metadata.encode());
        if let Some(header) = format::encode(&tensors, &metadata, self.out.data_start as usize) {
            return Ok(header);
        }
        let data_start = format::encoded_len(&tensors, &metadata);
        if data_start as u64 > MAX_HEADER_BYTES {
            return Err(self.too_many_values(data_start as u64));
        }
        self.out.move_to(data_start as u64).map_err(|source| self.failed(source))?;
        Ok(format::encode(&tensors, &metadata, data_start).expect("the header fits the room that was just made for it"))
    }

    fn write_rest(&mut self, header: &[u8]) -> io::Result<()> {
        for (name, _, _, n_bytes) in &tensors(&self.schema, self.n_rows) {
            match *name {
                LABELS => match &self.label_numbers {
                    None => self.labels.pour_into(&mut self.out)?,
                    Some(numbers) => self.labels.pour_renumbered(&mut self.out, numbers)?,
                },
                CATEGORIES => self.categories.pour_into(&mut self.out)?,
                WEIGHTS => self.weights.pour_into(&mut self.out)?,
                PADDING => self.out.write(&[0; 8][..*n_bytes])?,
                _ => {}
            }
        }
        self.out.finish(header)
    }

    pub(crate) fn check<F: Element, L: Element>(&self, rows: &RowBatch<'_, F, L>) -> Result<(), Error> {
        const OP: &str = "push";
        self.check_dtype::<F>(FEATURES, self.schema.dtype)?;
        self.check_dtype::<L>(LABELS, self.schema.label_dtype)?;
        let n_rows = rows.labels.len() / self.schema.n_labels;
        let n_weights = if self.schema.weights == Weights::Present { n_rows } else { 0 };
        if self.schema.weights == Weights::Absent && !rows.weights.is_empty() {
            let problem = "rows have no weights, set `Weights::Present` or use `push`".to_owned();
            return Err(Error::Schema { problem });
        }
        let parts = [
            ("labels", rows.labels.len(), n_rows * self.schema.n_labels),
            ("features", rows.features.len(), n_rows.saturating_mul(self.schema.n_cols())),
            ("categories", rows.categories.len(), n_rows.saturating_mul(self.schema.categories.len())),
            ("weights", rows.weights.len(), n_weights),
        ];
        match parts.into_iter().find(|(_, found, expected)| found != expected) {
            Some((arg, found, expected)) => Err(Error::Length { op: OP, arg, expected, found }),
            None => Ok(()),
        }
    }

    /// Returns an error if the table has a part that the pushed rows lack.
    fn check_has(&self, part: &str, has: bool, instead: &str) -> Result<(), Error> {
        match has {
            true => Err(Error::Schema { problem: format!("rows have {part}, push them with `{instead}`") }),
            false => Ok(()),
        }
    }

    fn check_codes(&self) -> Result<(), Error> {
        let columns = &self.schema.categories;
        if self.metadata.dictionaries.len() != columns.len() {
            let problem =
                format!("the codes of {} have no dictionaries; call `set_dictionaries` before `finish`", listed(columns));
            return Err(Error::Schema { problem });
        }
        for (dictionary, &code) in self.metadata.dictionaries.iter().zip(&self.largest_codes) {
            if code as usize >= dictionary.n_codes() {
                let (name, n) = (dictionary.name(), dictionary.values().len());
                let problem = format!("column `{name}` has code {code}, its dictionary has {n} values; codes count them from 1");
                return Err(Error::Schema { problem });
            }
        }
        Ok(())
    }

    fn too_many_values(&self, header_bytes: u64) -> Error {
        let longest = self.metadata.dictionaries.iter().max_by_key(|dictionary| dictionary.values().len());
        Error::TooManyValues {
            path: self.out.file.path().to_owned(),
            column: longest.map_or_else(String::new, |dictionary| dictionary.name().to_owned()),
            n_values: longest.map_or(0, |dictionary| dictionary.values().len()),
            header_bytes,
            limit: MAX_HEADER_BYTES,
        }
    }

    fn check_dtype<T: Element>(&self, tensor: &'static str, stored: DType) -> Result<(), Error> {
        if T::DTYPE != stored {
            let path = self.out.file.path().to_owned();
            return Err(Error::WrongDType { path, tensor, stored, asked: T::DTYPE });
        }
        Ok(())
    }

    fn failed(&self, cause: io::Error) -> Error {
        Error::Write { path: self.out.file.path().to_owned(), written_bytes: self.out.n_bytes(), cause }
    }
}
