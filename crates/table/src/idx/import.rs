use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use super::header::Header;
use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::import::{Array, Arrays, Dest, ImportReport, Input, LabelArray, LabelMap, Like, NotFinite, Origin, ReadSource};
use crate::parts::open_file;
use crate::remedy::Remedy;
use crate::source_identity::{SourceIdentity, file_name};

/// How to read a pair of IDX files, the format of MNIST.
///
/// The file at `source` has the features, with any number of dimensions and any type. `n` images `[n, height, width]` become rows
/// `[height, width, 1]`, channels last; other shapes are unchanged. Bytes stay `u8`, other numbers become `f32`; labels that are
/// bytes become `u8`, other integers `i64`, floats `f32`.
///
/// # Errors
/// [`Error::Source`] if a file is not IDX, is truncated or too long, or if the numbers of labels and rows differ; [`Error::Io`],
/// [`Error::Write`]. On `Err`, `dest` is unchanged.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (images, dest) = (folder.path().join("two-images-idx3-ubyte"), folder.path().join("two.safetensors"));
/// use brisk_table::{IdxOptions, Table, import};
///
/// // Two images of one row and three columns.
/// std::fs::write(&images, [0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 10, 20, 30, 40, 50, 60])?;
/// std::fs::write(folder.path().join("two-labels-idx1-ubyte"), [0, 0, 8, 1, 0, 0, 0, 2, 7, 9])?;
/// import(&images, &dest, &IdxOptions::default())?;
/// let table = Table::open(&dest)?;
/// assert_eq!(table.row_shape(), [1, 3, 1]);
/// assert_eq!(table.rows::<u8>(1..2)?, [40, 50, 60]);
/// assert_eq!(table.labels::<u8>()?, [7, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct IdxOptions {
    /// The file of labels. By default it is the file in the same folder whose name has `labels` and `idx1` in place of `images`
    /// and `idx3`: for `train-images-idx3-ubyte.gz`, it is `train-labels-idx1-ubyte.gz`.
    pub labels: Option<PathBuf>,
    /// The label of the first class, which is subtracted from labels that are integers: 1 for the letters of EMNIST, whose labels
    /// are 1 to 26. Unless it is 0, the table has names for its classes, which are the labels of the file; a label below it is an
    /// error.
    pub first_label: i64,
    /// A table to match, so that a test set is imported like its training set: its rows must have the same shape and type. If it
    /// has classes, labels become their numbers, and any other label is an error. A table with weights, offsets or words for
    /// missing values cannot be matched.
    pub like: Option<PathBuf>,
    /// How to treat features that are NaN or infinite, which only files of floats can contain.
    pub not_finite: NotFinite,
}

impl IdxOptions {
    fn labels_of(&self, path: &Path) -> Result<PathBuf, Error> {
        self.labels.clone().map_or_else(|| labels_beside(path), Ok)
    }
}

impl ReadSource for IdxOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        // First, so that a file that is missing or cannot be read is not reported as one without labels.
        drop(open_file(path)?);
        let source = SourceIdentity::of(path)?;
        let labels = self.labels_of(path)?;
        Origin::new(source, self, std::iter::once(labels.as_path()).chain(self.like()))
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        // Before the source is opened: if it is replaced meanwhile, the table is not taken for one of the new source.
        let origin = self.origin(path)?;
        let input = Input::open(path)?;
        let labels_path = self.labels_of(path)?;
        dest.check_differs([labels_path.as_path()])?;
        let like = self.like.as_deref().map(Like::read).transpose()?;
        let label_map = LabelMap::of(self.first_label, like.as_ref())?;
        let n_read = input.n_read;
        let mut features = array(path, input.bytes)?;
        if features.row_shape.len() == 2 {
            features.row_shape.push(1);
        }
        let labels = array(&labels_path, Input::open(&labels_path)?.bytes)?;
        let arrays =
            Arrays { features, labels: LabelArray::Own(labels), weights: None, not_finite: self.not_finite, label_map, like };
        arrays.write(path, dest, origin, &|| n_read.load(Ordering::Relaxed), progress)
    }

    fn like(&self) -> Option<&Path> {
        self.like.as_deref()
    }
}

fn array(path: &Path, mut from: Box<dyn Read + Send>) -> Result<Array<'static>, Error> {
    let name = file_name(path);
    let Header { numbers, shape } = Header::read(&name, &mut from).map_err(|failure| failure.into_error(path))?;
    let (n_rows, row_shape) = (u64::from(shape[0]), shape[1..].iter().map(|&dimension| dimension as usize).collect());
    Ok(Array { name, numbers, n_rows, row_shape, bytes: from })
}

/// The file of labels that belongs to a file of images.
fn labels_beside(path: &Path) -> Result<PathBuf, Error> {
    let name = file_name(path);
    let found = path.with_file_name(name.replace("images", "labels").replace("idx3", "idx1"));
    if found == path || !found.is_file() {
        let reason = SourceError::unexpected(
            format!("`{name}`"),
            "no file of labels in its folder",
            "one that is named after it",
            &[Remedy::NameLabelsFile],
        );
        return Err(reason.at(path));
    }
    Ok(found)
}
