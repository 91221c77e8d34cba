//! Arrays of features, labels and weights, read in parallel.

use std::io::{self, Read};
use std::path::Path;

use super::numbers::{NotFinite, Numbers, Unfit, Values};
use super::{Dest, ImportReport, ImportWarning, ImportWriter, LabelMap, Like, Names, Origin};
use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::format::TableMetadata;
use crate::schema::{Schema, Weights};
use crate::source_identity::SourceIdentity;
use crate::writer::Parts;

/// The number of bytes of features converted at a time. Fixed, so that the statistics are the same on any machine.
const CHUNK_BYTES: usize = 1 << 20;

/// The longest row that is read: four times a 2048 × 2048 image of four `f32` channels.
const MAX_ROW_BYTES: usize = 256 << 20;

/// An array, read row by row.
pub(crate) struct Array<'a> {
    /// Its name in messages: a file, or a member of an archive.
    pub(crate) name: String,
    pub(crate) numbers: Numbers,
    pub(crate) n_rows: u64,
    pub(crate) row_shape: Vec<usize>,
    /// The values, without the header.
    pub(crate) bytes: Box<dyn Read + 'a>,
}

/// Where the labels of rows are.
pub(crate) enum LabelArray<'a> {
    Own(Array<'a>),
    /// A column of the features, which is removed from them.
    #[cfg_attr(not(feature = "npy"), expect(dead_code, reason = "IDX files have one array each"))]
    Column(usize),
}

/// The arrays that make up a table.
pub(crate) struct Arrays<'a> {
    pub(crate) features: Array<'a>,
    pub(crate) labels: LabelArray<'a>,
    pub(crate) weights: Option<Array<'a>>,
    pub(crate) not_finite: NotFinite,
    /// How labels become those of the table.
    pub(crate) label_map: LabelMap,
    pub(crate) like: Option<Like>,
}

impl Arrays<'_> {
    /// Writes the table of the source at `path`, of which `n_read` returns the number of bytes read so far.
    pub(crate) fn write(
        mut self,
        path: &Path,
        dest: &Dest<'_>,
        origin: Origin,
        n_read: &dyn Fn() -> u64,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportReport, Error> {
        let fail = |reason: SourceError| reason.at(path);
        let row_bytes = self.check().map_err(fail)?;
        let n_rows = self.features.n_rows;
        if n_rows == 0 {
            return Err(SourceError::NoRows { found: "an array without rows" }.at(path));
        }
        let mut rows = Rows::of(&self);
        let total_bytes = origin.source.n_bytes;
        let schema = rows.schema(&self, origin.source);
        if let Some(like) = &self.like {
            like.check_rows(&schema.row_shape, schema.dtype)?;
            like.check_unnamed(schema.weights)?;
        }
        let (names, classes) = match &self.label_map {
            LabelMap::Plain => (Names::Known, Vec::new()),
            LabelMap::Classes(_, classes) => (Names::Known, classes.clone()),
            LabelMap::From { .. } => (Names::FoundInRows, Vec::new()),
        };
        let metadata = TableMetadata { import: Some(origin.options), classes, ..TableMetadata::default() };
        let mut writer = ImportWriter::create(dest, schema, metadata, names)?;

        let chunk_rows = (CHUNK_BYTES / row_bytes).max(1);
        let mut done = 0;
        while done < n_rows {
            let n = usize::try_from(n_rows - done).map_or(chunk_rows, |left| left.min(chunk_rows));
            rows.read(&mut self, done, n).map_err(|failure| failure.into_error(path))?;
            let ((_, features), (_, labels)) = (rows.features.stored(), rows.labels.stored());
            writer.push(Parts { features, categories: &[], labels, weights: &rows.weights }, None)?;
            done += n as u64;
            progress(Progress { bytes_read: n_read(), total_bytes, n_rows: writer.n_rows() });
        }
        self.check_ends().map_err(|failure| failure.into_error(path))?;
        let report = ImportReport::finish(writer, self.label_map.into_names())?;
        let warnings = rows.rounded.iter().filter_map(|rounded| rounded.warning()).collect();
        Ok(ImportReport { warnings, ..report })
    }

    /// Checks that the arrays fit together; returns the number of bytes of a row of features.
    fn check(&self) -> Result<usize, SourceError> {
        let features = &self.features;
        let n_bytes = features.numbers.n_bytes();
        let row_bytes = features.row_shape.iter().try_fold(n_bytes, |n, &dimension| n.checked_mul(dimension));
        let Some(row_bytes) = row_bytes.filter(|&n| n <= MAX_ROW_BYTES) else {
            return Err(SourceError::unsupported(
                features.name.clone(),
                format!("has rows of shape {:?} of {}", features.row_shape, features.numbers.dtype),
                format!("rows of up to {MAX_ROW_BYTES} bytes are read"),
            ));
        };
        if row_bytes == 0 {
            return Err(SourceError::unsupported(
                features.name.clone(),
                format!("has rows of shape {:?}, without a value", features.row_shape),
                "a table has at least one column",
            ));
        }
        if let LabelArray::Column(label) = self.labels {
            match features.row_shape.as_slice() {
                [n_cols] if label < *n_cols && *n_cols > 1 => {}
                shape => {
                    return Err(SourceError::unsupported(
                        features.name.clone(),
                        format!("has rows of shape {shape:?}, but column {label} was chosen as the label"),
                        "choose a column of rows with at least two; columns are counted from 0",
                    ));
                }
            }
        }
        let own = match &self.labels {
            LabelArray::Own(labels) => Some((labels, "labels")),
            LabelArray::Column(_) => None,
        };
        for (array, what) in own.into_iter().chain(self.weights.as_ref().map(|weights| (weights, "weights"))) {
            if array.row_shape.iter().any(|&dimension| dimension != 1) {
                return Err(SourceError::unsupported(
                    array.name.clone(),
                    format!("has rows of shape {:?}, which are no {what}", array.row_shape),
                    "each row has one number; of one-hot rows take `argmax(axis=1)`",
                ));
            }
            if array.n_rows != features.n_rows {
                let found = format!("has {} rows, `{}` has {}", features.n_rows, array.name, array.n_rows);
                return Err(SourceError::unsupported(format!("`{}`", features.name), found, "each row needs one label"));
            }
        }
        Ok(row_bytes)
    }

    /// Checks that no bytes follow the arrays, since they would be lost.
    fn check_ends(&mut self) -> Result<(), Failure> {
        let own = match &mut self.labels {
            LabelArray::Own(labels) => Some(labels),
            LabelArray::Column(_) => None,
        };
        for array in std::iter::once(&mut self.features).chain(own).chain(&mut self.weights) {
            let more = (&mut array.bytes).take(1).read_to_end(&mut Vec::new())?;
            if more > 0 {
                return Err(Failure::Source(SourceError::unexpected(
                    array.name.clone(),
                    format!("more bytes after its {} rows", array.n_rows),
                    "one array and nothing else; save others to files of their own",
                    &[],
                )));
            }
        }
        Ok(())
    }
}

/// Why a header or rows could not be read.
pub(crate) enum Failure {
    Read(io::Error),
    Source(SourceError),
}

impl From<io::Error> for Failure {
    fn from(cause: io::Error) -> Self {
        Self::Read(cause)
    }
}

impl From<SourceError> for Failure {
    fn from(reason: SourceError) -> Self {
        Self::Source(reason)
    }
}

impl Failure {
    pub(crate) fn into_error(self, path: &Path) -> Error {
        match self {
            Self::Read(cause) => Error::Io { path: path.to_owned(), action: "read or unpack", cause },
            Self::Source(reason) => reason.at(path),
        }
    }
}

/// Some rows, as the bytes of the file and as they are stored in the table.
struct Rows {
    bytes: Vec<u8>,
    label_bytes: Vec<u8>,
    features: Values,
    labels: Values,
    weights: Vec<f32>,
    /// What features and labels lost in rounding.
    rounded: [Rounded; 2],
}

/// The numbers of an array that lost digits.
#[derive(Default)]
struct Rounded {
    array: String,
    n_values: u64,
    first: Option<(f64, f32)>,
}

impl Rounded {
    fn add(&mut self, array: &str, (n_values, first): (u64, Option<(f64, f32)>)) {
        if self.first.is_none() && first.is_some() {
            (self.array, self.first) = (array.to_owned(), first);
        }
        self.n_values += n_values;
    }

    fn warning(&self) -> Option<ImportWarning> {
        let (first, stored) = self.first?;
        Some(ImportWarning::RoundedArray { array: self.array.clone(), n_values: self.n_values, first, stored: stored.into() })
    }
}

impl Rows {
    fn of(arrays: &Arrays<'_>) -> Self {
        let label_dtype = match &arrays.labels {
            LabelArray::Own(labels) => labels.numbers.dtype,
            LabelArray::Column(_) => arrays.features.numbers.dtype,
        };
        Self {
            bytes: Vec::new(),
            label_bytes: Vec::new(),
            features: Values::of_features(arrays.features.numbers.dtype),
            labels: Values::of_labels(label_dtype),
            weights: Vec::new(),
            rounded: Default::default(),
        }
    }

    fn schema(&self, arrays: &Arrays<'_>, source: SourceIdentity) -> Schema {
        let row_shape = match (&arrays.labels, arrays.features.row_shape.as_slice()) {
            (LabelArray::Column(_), [n_cols]) => vec![n_cols - 1],
            // Each row is one number: a single column.
            (_, []) => vec![1],
            (_, shape) => shape.to_vec(),
        };
        let weights = if arrays.weights.is_some() { Weights::Present } else { Weights::Absent };
        let (dtype, label_dtype) = (self.features.stored().0, self.labels.stored().0);
        Schema { dtype, label_dtype, weights, source: Some(source), ..Schema::shaped(&row_shape) }
    }

    /// Reads `n` rows, starting at `first`.
    fn read(&mut self, arrays: &mut Arrays<'_>, first: u64, n: usize) -> Result<(), Failure> {
        let Arrays { features, labels, weights, not_finite, label_map, .. } = arrays;
        features.read(n, first, &mut self.bytes)?;
        let (name, numbers) = match labels {
            LabelArray::Own(labels) => {
                labels.read(n, first, &mut self.label_bytes)?;
                (labels.name.as_str(), labels.numbers)
            }
            LabelArray::Column(label) => {
                let n_bytes = features.numbers.n_bytes();
                split_column(&mut self.bytes, &mut self.label_bytes, n, *label * n_bytes, n_bytes);
                (features.name.as_str(), features.numbers)
            }
        };
        let unfit = |name: &str, row_len: usize, unfit: Unfit| {
            let (row, col) = (first + (unfit.index / row_len) as u64, unfit.index % row_len);
            let column = if row_len > 1 { format!("value {col} of `{name}`") } else { format!("`{name}`") };
            Failure::Source(SourceError::Value { row, column, found: unfit.found, expected: unfit.expected })
        };
        numbers.labels(&self.label_bytes, &mut self.labels).map_err(|bad| unfit(name, 1, bad))?;
        if let Values::F32(labels) = &self.labels {
            self.rounded[1].add(name, numbers.rounded(&self.label_bytes, labels));
        }
        label_map.apply(&mut self.labels, first, name)?;
        let row_len = self.bytes.len() / n / features.numbers.n_bytes();
        let converted = features.numbers.features(&self.bytes, *not_finite, &mut self.features);
        converted.map_err(|bad| unfit(&features.name, row_len, bad))?;
        if let Values::F32(floats) = &self.features {
            self.rounded[0].add(&features.name, features.numbers.rounded(&self.bytes, floats));
        }
        if let Some(weights) = weights {
            weights.read(n, first, &mut self.label_bytes)?;
            weights.numbers.weights(&self.label_bytes, &mut self.weights).map_err(|bad| unfit(&weights.name, 1, bad))?;
        }
        Ok(())
    }
}

impl Array<'_> {
    /// Replaces `out` by the bytes of the next `n` rows, which follow `first` others.
    fn read(&mut self, n: usize, first: u64, out: &mut Vec<u8>) -> Result<(), Failure> {
        let row_bytes = self.row_shape.iter().product::<usize>() * self.numbers.n_bytes();
        out.clear();
        // Grows with the bytes that are present, not with the number that the header claims.
        (&mut self.bytes).take((n * row_bytes) as u64).read_to_end(out)?;
        if out.len() < n * row_bytes {
            let found = first + (out.len() / row_bytes) as u64;
            let (part, expected) = (self.name.clone(), self.n_rows);
            return Err(Failure::Source(SourceError::Truncated { part, found, expected }));
        }
        Ok(())
    }
}

/// Moves `n_bytes` bytes at offset `at` of each of the `n` rows in `rows` to `column`.
fn split_column(rows: &mut Vec<u8>, column: &mut Vec<u8>, n: usize, at: usize, n_bytes: usize) {
    let row_bytes = rows.len() / n;
    column.clear();
    let mut end = 0;
    for row in 0..n {
        let start = row * row_bytes;
        column.extend_from_slice(&rows[start + at..][..n_bytes]);
        rows.copy_within(start..start + at, end);
        rows.copy_within(start + at + n_bytes..start + row_bytes, end + at);
        end += row_bytes - n_bytes;
    }
    rows.truncate(end);
}
