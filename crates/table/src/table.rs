use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::checksum::{BLOCK_BYTES, checksum};
use crate::format::{
    CATEGORIES, CHECKSUMS, FEATURES, FormatError, LABELS, Layout, PREFIX_BYTES, TableMetadata, Tensor, WEIGHTS, header_bytes,
};
use crate::map::Bytes;
use crate::{ColumnStatistics, DType, Dictionary, Element, Error, SourceIdentity};

/// A table on disk, open for reading; its rows are borrowed, never decoded.
///
/// [`Table::open`] copies the file into memory. [`Table::open_mapped`] borrows it from the page cache, on a promise.
/// A table is `Sync`: one can serve any number of threads.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    bytes: Bytes,
    parts: Parts,
}

/// Where the parts of a table are, checked against one another.
#[derive(Debug)]
struct Parts {
    n_rows: usize,
    n_cols: usize,
    data_start: usize,
    features: Tensor,
    labels: Tensor,
    categories: Option<Tensor>,
    weights: Option<Tensor>,
    checksums: Option<Tensor>,
    metadata: TableMetadata,
}

impl Table {
    /// Opens the table at `path` and copies it into memory.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::NotAFile`] if it cannot be read, [`Error::Format`] if it is no table or a truncated one.
    /// # Cost
    /// Reads the file once; the rows are neither decoded nor checked, see [`Table::verify`].
    /// # Examples
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("xor.safetensors");
    /// use brisk_table::{Schema, Table, TableWriter};
    ///
    /// let mut writer = TableWriter::create(&path, Schema::named(["a", "b"]))?;
    /// writer.push(&[0.0_f32, 1.0, 1.0, 1.0], &[1.0_f32, 0.0])?;
    /// writer.finish()?;
    ///
    /// let table = Table::open(&path)?;
    /// assert_eq!((table.n_rows(), table.n_cols()), (2, 2));
    /// assert_eq!(table.rows::<f32>(0..2)?, [0.0, 1.0, 1.0, 1.0]);
    /// assert_eq!(table.labels::<f32>()?, [1.0, 0.0]);
    /// assert_eq!(table.column_names(), ["a", "b"]);
    /// table.verify()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), |mut file, n_bytes| {
            io::Seek::rewind(&mut file)?;
            Bytes::read(file, n_bytes)
        })
    }

    pub(crate) fn open_with(path: &Path, load: impl FnOnce(&File, u64) -> io::Result<Bytes>) -> Result<Self, Error> {
        let opened = Opened::at(path)?;
        let bytes = load(&opened.file, opened.n_bytes).map_err(opened.io("read"))?;
        // The header was read before; a file that changed since is not one to point into.
        if bytes.as_slice().len() as u64 != opened.n_bytes {
            return Err(opened.io("read")(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Self { path: path.to_owned(), bytes, parts: opened.parts })
    }

    /// The file this is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.parts.n_rows
    }

    /// How many features a row has: the product of [`row_shape`](Self::row_shape); 0 for a table of categories alone.
    pub fn n_cols(&self) -> usize {
        self.parts.n_cols
    }

    /// The shape of one row's features.
    pub fn row_shape(&self) -> &[usize] {
        &self.parts.features.shape[1..]
    }

    /// What the features are.
    pub fn dtype(&self) -> DType {
        self.parts.features.dtype
    }

    /// What the labels are.
    pub fn label_dtype(&self) -> DType {
        self.parts.labels.dtype
    }

    /// The columns' names; none for a table whose writer gave none.
    pub fn column_names(&self) -> &[String] {
        &self.parts.metadata.column_names
    }

    /// The label's name, if it has one.
    pub fn label_name(&self) -> Option<&str> {
        self.parts.metadata.label_name.as_deref()
    }

    /// How many categorical columns there are.
    pub fn n_categories(&self) -> usize {
        self.parts.categories.as_ref().map_or(0, |tensor| tensor.shape[1])
    }

    /// What the codes of each categorical column stand for; none in a file that another program wrote.
    pub fn dictionaries(&self) -> &[Dictionary] {
        &self.parts.metadata.dictionaries
    }

    /// What is known of each column, gathered when the table was written; `None` for a file that another program wrote.
    pub fn statistics(&self) -> Option<&[ColumnStatistics]> {
        self.parts.metadata.statistics.as_deref()
    }

    /// What the table was imported from.
    pub fn source(&self) -> Option<&SourceIdentity> {
        self.parts.metadata.source.as_ref()
    }

    /// The features of some rows, borrowed.
    ///
    /// # Shapes
    /// `[rows.len(), n_cols]`, row-major.
    /// # Errors
    /// [`Error::RowsOutOfRange`]; [`Error::WrongDType`] if `T` is not what the table holds.
    #[inline]
    pub fn rows<T: Element>(&self, rows: Range<usize>) -> Result<&[T], Error> {
        self.check_dtype::<T>(FEATURES, &self.parts.features)?;
        self.row_bytes(rows).map(cast)
    }

    /// The features of some rows as they lie in the file, little-endian, whatever their dtype.
    ///
    /// # Errors
    /// [`Error::RowsOutOfRange`].
    #[inline]
    pub fn row_bytes(&self, rows: Range<usize>) -> Result<&[u8], Error> {
        if rows.start > rows.end || rows.end > self.parts.n_rows {
            return Err(self.rows_out_of_range(rows));
        }
        // Cannot overflow: both ends lie within the tensor.
        let row = self.parts.n_cols * self.parts.features.dtype.n_bytes();
        Ok(&self.bytes_of(&self.parts.features)[rows.start * row..rows.end * row])
    }

    /// All labels, borrowed: `[n_rows]`.
    ///
    /// # Errors
    /// [`Error::WrongDType`] if `T` is not what the table holds.
    #[inline]
    pub fn labels<T: Element>(&self) -> Result<&[T], Error> {
        self.check_dtype::<T>(LABELS, &self.parts.labels)?;
        Ok(cast(self.bytes_of(&self.parts.labels)))
    }

    /// The categories of some rows, borrowed: codes of the [`dictionaries`](Self::dictionaries), 0 where a value is missing or unknown.
    ///
    /// # Shapes
    /// `[rows.len(), n_categories]`, row-major; nothing for a table without categories.
    /// # Errors
    /// [`Error::RowsOutOfRange`].
    #[inline]
    pub fn categories(&self, rows: Range<usize>) -> Result<&[u32], Error> {
        if rows.start > rows.end || rows.end > self.parts.n_rows {
            return Err(self.rows_out_of_range(rows));
        }
        let Some(tensor) = &self.parts.categories else { return Ok(&[]) };
        let n_categories = tensor.shape[1];
        Ok(&cast(self.bytes_of(tensor))[rows.start * n_categories..rows.end * n_categories])
    }

    /// All weights, borrowed: `[n_rows]`; `None` if rows have none.
    #[inline]
    pub fn weights(&self) -> Option<&[f32]> {
        Some(cast(self.bytes_of(self.parts.weights.as_ref()?)))
    }

    /// Checks every byte against the checksums that were written with the table.
    ///
    /// # Errors
    /// [`Error::Checksum`] with the first damaged place; [`Error::NoChecksums`] if the file has none, as one that another program wrote.
    /// # Cost
    /// Reads the whole file.
    pub fn verify(&self) -> Result<(), Error> {
        let Some(sums) = &self.parts.checksums else {
            return Err(Error::NoChecksums { path: self.path.clone() });
        };
        let (all, data_start) = (self.bytes.as_slice(), self.parts.data_start);
        let blocks = std::iter::once(0..data_start).chain(
            (data_start..sums.range.start).step_by(BLOCK_BYTES).map(|start| start..sums.range.start.min(start + BLOCK_BYTES)),
        );
        for (block, &expected) in blocks.zip(cast::<u32>(self.bytes_of(sums))) {
            let found = checksum(&all[block.clone()]);
            if found != expected {
                let (start, end) = (block.start as u64, block.end as u64);
                return Err(Error::Checksum { path: self.path.clone(), start, end, expected, found });
            }
        }
        Ok(())
    }

    pub(crate) fn rows_out_of_range(&self, rows: Range<usize>) -> Error {
        Error::RowsOutOfRange { path: self.path.clone(), start: rows.start, end: rows.end, n_rows: self.parts.n_rows }
    }

    fn check_dtype<T: Element>(&self, name: &'static str, tensor: &Tensor) -> Result<(), Error> {
        if tensor.dtype != T::DTYPE {
            return Err(Error::WrongDType { path: self.path.clone(), tensor: name, stored: tensor.dtype, asked: T::DTYPE });
        }
        Ok(())
    }

    fn bytes_of(&self, tensor: &Tensor) -> &[u8] {
        &self.bytes.as_slice()[tensor.range.clone()]
    }
}

/// What the table at `path` says of itself, without its rows.
#[cfg(feature = "import")]
#[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "each importer uses its own part of it"))]
pub(crate) fn read_metadata(path: &Path) -> Result<TableMetadata, Error> {
    Opened::at(path).map(|opened| opened.parts.metadata)
}

/// A file whose header has been read and found to be a table's.
struct Opened<'a> {
    path: &'a Path,
    file: File,
    n_bytes: u64,
    parts: Parts,
}

impl<'a> Opened<'a> {
    fn at(path: &'a Path) -> Result<Self, Error> {
        let io = |action| move |source| Error::Io { path: path.to_owned(), action, source };
        let format = |reason| Error::Format { path: path.to_owned(), reason };

        let mut file = open_file(path)?;
        let n_bytes = file.metadata().map_err(io("read"))?.len();
        let mut first_eight = [0; PREFIX_BYTES];
        if n_bytes < PREFIX_BYTES as u64 {
            return Err(format(FormatError::HeaderPastEnd { header_end: PREFIX_BYTES as u64, file_bytes: n_bytes }));
        }
        file.read_exact(&mut first_eight).map_err(io("read"))?;
        let mut header = vec![0; header_bytes(first_eight, n_bytes).map_err(format)?];
        file.read_exact(&mut header).map_err(io("read"))?;
        let layout = Layout::parse(&header, n_bytes).map_err(format)?;
        let parts = Parts::find(layout).map_err(format)?;
        Ok(Self { path, file, n_bytes, parts })
    }

    fn io(&self, action: &'static str) -> impl FnOnce(io::Error) -> Error {
        let path = self.path.to_owned();
        move |source| Error::Io { path, action, source }
    }
}

/// Opens what must be a file, not a folder or a pipe.
pub(crate) fn open_file(path: &Path) -> Result<File, Error> {
    let io = |source| Error::Io { path: path.to_owned(), action: "open", source };
    let metadata = std::fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        let found = if metadata.is_dir() { "a folder" } else { "a pipe or device" };
        return Err(Error::NotAFile { path: path.to_owned(), found });
    }
    File::open(path).map_err(io)
}

impl Parts {
    fn find(layout: Layout) -> Result<Self, FormatError> {
        let names = || layout.tensors.iter().map(|tensor| tensor.name.clone()).collect();
        let required = |name| layout.tensor(name).ok_or_else(|| FormatError::MissingTensor { tensor: name, found: names() });
        let features = required(FEATURES)?;
        let labels = required(LABELS)?;
        let (categories, weights) = (layout.tensor(CATEGORIES), layout.tensor(WEIGHTS));
        let checksums = layout.tensor(CHECKSUMS);

        let [n_rows, row_shape @ ..] = features.shape.as_slice() else {
            return Err(unfit(FEATURES, features, "[n, …]".to_owned()));
        };
        let only_categories = row_shape == [0] && categories.is_some();
        if row_shape.is_empty() || (row_shape.contains(&0) && !only_categories) {
            return Err(unfit(FEATURES, features, "[n, columns] with at least one column".to_owned()));
        }
        if labels.shape != [*n_rows] {
            return Err(unfit(LABELS, labels, format!("shape [{n_rows}], one for each row of `features`")));
        }
        if let Some(weights) = weights.filter(|weights| weights.shape != [*n_rows] || weights.dtype != DType::F32) {
            return Err(unfit(WEIGHTS, weights, format!("F32 of shape [{n_rows}], one for each row of `features`")));
        }
        let n_categories = match categories {
            None => 0,
            Some(Tensor { dtype: DType::U32, shape, .. }) if shape.len() == 2 && shape[0] == *n_rows && shape[1] > 0 => shape[1],
            Some(tensor) => {
                let expected = format!("U32 of shape [{n_rows}, columns], a row for each of `features`");
                return Err(unfit(CATEGORIES, tensor, expected));
            }
        };
        let metadata = TableMetadata::parse(&layout.metadata, row_shape.iter().product(), n_categories)?;
        // A tensor of that name in another program's file may be anything.
        let checksums = checksums.filter(|_| metadata.is_ours);
        if let Some(sums) = checksums {
            let n_sums = 1 + (sums.range.start - layout.data_start).div_ceil(BLOCK_BYTES);
            if sums.dtype != DType::U32 || sums.shape != [n_sums] {
                return Err(unfit(CHECKSUMS, sums, format!("U32 of shape [{n_sums}], one for each block")));
            }
        }
        let always = [(FEATURES, Some(features)), (LABELS, Some(labels))];
        for (name, tensor) in always.into_iter().chain([(CATEGORIES, categories), (WEIGHTS, weights), (CHECKSUMS, checksums)]) {
            let Some(Tensor { dtype, range, .. }) = tensor else { continue };
            if range.start % dtype.n_bytes() != 0 {
                return Err(FormatError::Misaligned { tensor: name, dtype: *dtype, start: range.start as u64 });
            }
        }
        Ok(Self {
            n_rows: *n_rows,
            n_cols: row_shape.iter().product(),
            data_start: layout.data_start,
            features: features.clone(),
            labels: labels.clone(),
            categories: categories.cloned(),
            weights: weights.cloned(),
            checksums: checksums.cloned(),
            metadata,
        })
    }
}

fn unfit(name: &'static str, tensor: &Tensor, expected: String) -> FormatError {
    FormatError::TensorShape { tensor: name, dtype: tensor.dtype, found: tensor.shape.clone(), expected }
}

/// Bytes of a tensor as its elements.
///
/// # Panics
/// If they are not aligned, which was checked when the table was opened.
fn cast<T: Element>(bytes: &[u8]) -> &[T] {
    bytemuck::try_cast_slice(bytes).expect("tensors are aligned and hold whole elements, as was checked on opening")
}
