mod blocks;
mod spool;
mod temp_file;

use std::io;
use std::path::Path;

use blocks::Blocks;
use spool::Spool;
use temp_file::TempFile;

use crate::format::{self, CHECKSUMS, FEATURES, LABELS, PADDING, TableMetadata, WEIGHTS};
use crate::statistics::Moments;
use crate::{ColumnStatistics, DType, Element, Error, Schema, Weights};

/// Writes a table row by row, without knowing how many there will be; memory use does not grow with the table.
///
/// Rows go to a temporary file beside the one to be. [`finish`](Self::finish) syncs it to disk and renames it, so that a reader sees
/// the old table or the new one and never a part; a map of the old one stays what it was. Dropped without `finish`, or on any error,
/// the writer removes what it wrote. A process that is killed cannot do that: it leaves a file `.NAME.….tmp`, which may be deleted.
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
    data_start: usize,
    n_rows: usize,
    labels: Spool,
    weights: Spool,
    moments: Moments,
}

impl TableWriter {
    /// Starts a table that [`finish`](Self::finish) will put at `path`.
    ///
    /// # Errors
    /// [`Error::Schema`] for a schema that no table can have; [`Error::Write`] if no file can be made in that folder.
    pub fn create(path: impl AsRef<Path>, schema: Schema) -> Result<Self, Error> {
        let (path, import) = (path.as_ref(), None);
        schema.check()?;
        let file = TempFile::create(path).map_err(|source| Error::Write { path: path.to_owned(), written_bytes: 0, source })?;
        Self::start(file, schema, import)
    }

    /// The same for an importer, which notes how it was told to read the source.
    #[cfg(feature = "csv")]
    pub(crate) fn create_import(path: &Path, schema: Schema, import: String) -> Result<Self, Error> {
        schema.check()?;
        let file = TempFile::create(path).map_err(|source| Error::Write { path: path.to_owned(), written_bytes: 0, source })?;
        Self::start(file, schema, Some(import))
    }

    fn start(file: TempFile, schema: Schema, import: Option<String>) -> Result<Self, Error> {
        let metadata = TableMetadata {
            is_ours: true,
            column_names: schema.column_names.clone(),
            label_name: schema.label_name.clone(),
            statistics: None,
            source: schema.source.clone(),
            import,
        };
        let moments = Moments::new(schema.n_cols());
        let data_start = longest_header(&schema, &metadata);
        let (labels, weights) = (Spool::default(), Spool::default());
        let mut writer = Self { out: Blocks::new(file), schema, metadata, data_start, n_rows: 0, labels, weights, moments };
        let header_to_be = writer.out.skip_to(data_start as u64);
        header_to_be.map_err(|source| writer.failed(source))?;
        Ok(writer)
    }

    /// Appends rows; large slices and single rows are both fine.
    ///
    /// # Shapes
    /// `features`: `[n, n_cols]`, row-major; `labels`: `[n]`.
    /// # Errors
    /// [`Error::WrongDType`] and [`Error::Length`] if they are not what the schema says, after which the writer is as it was;
    /// [`Error::Write`] if the disk is full or fails, after which nothing but dropping the writer makes sense.
    pub fn push<F: Element, L: Element>(&mut self, features: &[F], labels: &[L]) -> Result<(), Error> {
        self.check_weights(Weights::Absent, labels.len(), 0)?;
        self.push_rows(features, labels, &[], None)
    }

    /// The same for a table whose schema has [`Weights::Present`]; `weights`: `[n]`.
    ///
    /// # Errors
    /// As for [`push`](Self::push).
    pub fn push_weighted<F: Element, L: Element>(&mut self, features: &[F], labels: &[L], weights: &[f32]) -> Result<(), Error> {
        self.check_weights(Weights::Present, labels.len(), weights.len())?;
        self.push_rows(features, labels, weights, None)
    }

    /// The same for rows whose moments are known.
    #[cfg(feature = "csv")]
    pub(crate) fn push_with_moments(
        &mut self,
        features: &[f32],
        labels: &[f32],
        weights: &[f32],
        moments: &Moments,
    ) -> Result<(), Error> {
        self.push_rows(features, labels, weights, Some(moments))
    }

    fn push_rows<F: Element, L: Element>(
        &mut self,
        features: &[F],
        labels: &[L],
        weights: &[f32],
        moments: Option<&Moments>,
    ) -> Result<(), Error> {
        self.check_dtype::<F>(FEATURES, self.schema.dtype)?;
        self.check_dtype::<L>(LABELS, self.schema.label_dtype)?;
        let expected = labels.len().saturating_mul(self.schema.n_cols());
        if features.len() != expected {
            return Err(Error::Length { op: "push", arg: "features", expected, found: features.len() });
        }
        match moments {
            Some(moments) => self.moments.merge(moments),
            None => self.moments.add(features),
        }
        let written = (|| {
            self.out.write(bytemuck::cast_slice(features))?;
            self.labels.write(self.out.file(), bytemuck::cast_slice(labels))?;
            self.weights.write(self.out.file(), bytemuck::cast_slice(weights))
        })();
        written.map_err(|source| self.failed(source))?;
        self.n_rows += labels.len();
        Ok(())
    }

    /// How many rows were pushed.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// What is known of each column so far.
    pub fn statistics(&self) -> Vec<ColumnStatistics> {
        self.moments.statistics()
    }

    /// Completes the table: labels, weights, checksums and header, synced to disk and renamed. Returns how many rows it has.
    ///
    /// # Errors
    /// [`Error::Write`]; then there is no table, and one that was there before is untouched.
    pub fn finish(mut self) -> Result<usize, Error> {
        self.write_rest().map_err(|source| self.failed(source))?;
        let (path, written_bytes) = (self.out.file().path().to_owned(), self.out.n_bytes());
        self.out.into_file().publish().map_err(|source| Error::Write { path, written_bytes, source })?;
        Ok(self.n_rows)
    }

    fn write_rest(&mut self) -> io::Result<()> {
        let tensors = tensors(&self.schema, self.n_rows);
        for (name, _, _, n_bytes) in &tensors {
            match *name {
                LABELS => self.labels.pour_into(&mut self.out)?,
                WEIGHTS => self.weights.pour_into(&mut self.out)?,
                PADDING => self.out.write(&[0; 8][..*n_bytes])?,
                _ => {}
            }
        }
        self.metadata.statistics = Some(self.moments.statistics());
        let header = format::encode(&tensors, &self.metadata.encode(), self.data_start);
        let header = header.expect("the header fits: room was kept for the longest there can be");
        self.out.finish(&header)
    }

    fn check_weights(&self, given: Weights, n_rows: usize, n_weights: usize) -> Result<(), Error> {
        if given != self.schema.weights {
            let problem = match given {
                Weights::Absent => "rows have weights, push them with `push_weighted`",
                Weights::Present => "rows have no weights, ask for `Weights::Present` or use `push`",
            };
            return Err(Error::Schema { problem: problem.to_owned() });
        }
        if given == Weights::Present && n_weights != n_rows {
            return Err(Error::Length { op: "push_weighted", arg: "weights", expected: n_rows, found: n_weights });
        }
        Ok(())
    }

    fn check_dtype<T: Element>(&self, tensor: &'static str, stored: DType) -> Result<(), Error> {
        if T::DTYPE != stored {
            let path = self.out.file().path().to_owned();
            return Err(Error::WrongDType { path, tensor, stored, asked: T::DTYPE });
        }
        Ok(())
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write { path: self.out.file().path().to_owned(), written_bytes: self.out.n_bytes(), source }
    }
}

/// The tensors of a table of `n_rows`, in the order of the file: each starts at a multiple of its element's size.
fn tensors(schema: &Schema, n_rows: usize) -> Vec<(&'static str, DType, Vec<usize>, usize)> {
    // Saturating: also asked for the longest header there can be.
    let n_feature_bytes = n_rows.saturating_mul(schema.n_cols()).saturating_mul(schema.dtype.n_bytes());
    let label_bytes = schema.label_dtype.n_bytes();
    let labels = (LABELS, schema.label_dtype, vec![n_rows], n_rows.saturating_mul(label_bytes));
    let shape = std::iter::once(n_rows).chain(schema.row_shape.iter().copied()).collect();

    let mut tensors = vec![(FEATURES, schema.dtype, shape, n_feature_bytes)];
    // One gap of less than 8 bytes suffices: before the labels, or behind them where they are the smaller.
    let alignment = label_bytes.max(DType::U32.n_bytes());
    let label_first = label_bytes < DType::U32.n_bytes();
    let end = if label_first { n_feature_bytes.saturating_add(labels.3) } else { n_feature_bytes };
    let gap = end.wrapping_neg() % alignment;
    let padding = (gap > 0).then(|| (PADDING, DType::U8, vec![gap], gap));
    if label_first {
        tensors.push(labels);
        tensors.extend(padding);
    } else {
        tensors.extend(padding);
        tensors.push(labels);
    }
    if schema.weights == Weights::Present {
        tensors.push((WEIGHTS, DType::F32, vec![n_rows], n_rows.saturating_mul(DType::F32.n_bytes())));
    }
    let n_bytes = tensors.iter().map(|tensor| tensor.3).fold(0, usize::saturating_add);
    let n_sums = 1 + n_bytes.div_ceil(crate::checksum::BLOCK_BYTES);
    tensors.push((CHECKSUMS, DType::U32, vec![n_sums], n_sums * DType::U32.n_bytes()));
    tensors
}

/// Room for any header of that schema: the header of a table with the largest sizes and the longest numbers there are.
fn longest_header(schema: &Schema, metadata: &TableMetadata) -> usize {
    let longest = -2.225_073_858_507_201_4e-308;
    let column = ColumnStatistics { count: u64::MAX, mean: longest, std: longest, min: longest, max: longest };
    let mut entries = metadata.encode();
    let statistics = TableMetadata { statistics: Some(vec![column; schema.n_cols()]), ..TableMetadata::default() };
    entries.extend(statistics.encode());
    let mut tensors = tensors(schema, usize::MAX);
    tensors.push((PADDING, DType::U8, vec![usize::MAX], usize::MAX));
    format::encoded_len(&tensors, &entries)
}
