use std::path::PathBuf;

use crate::import::{BadRows, FeatureDType, LabelKind, Missing};

/// How to read a file of svmlight or libsvm: lines `label index:value … # comment`. By default, the first index and the number of
/// features are detected.
///
/// A test file may lack the last features of its training file, or some of its classes: pass the training table as
/// [`like`](Self::like), or the same `first_index`, `n_features` and [`LabelKind::Given`] for both files.
///
/// Rows become dense: a feature that is not given is 0. Every value becomes the `f32` nearest to the number in the file. Columns
/// are named `feature_` with their index in the file. Lines that contain only a comment are not rows; a `qid:` after the label is
/// checked and dropped.
///
/// # Errors
/// [`SourceError::Line`](crate::SourceError::Line) with file, line, byte, what was found and what was expected, always of the
/// first bad row; [`Error::Source`](crate::Error::Source) for a file or options that make no table;
/// [`Error::Io`](crate::Error::Io) if the file cannot be read or decompressed;
/// [`Error::Write`](crate::Error::Write). On `Err`, `dest` is unchanged.
/// # Cost
/// Reads the file twice, unless both [`first_index`](Self::first_index) and [`n_features`](Self::n_features) are given. Memory
/// use is a few megabytes per core.
/// # Reference
/// T. Joachims, *SVM-light*; the rules for the first index are those of scikit-learn's `load_svmlight_file`.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (source, dest) = (folder.path().join("two.svm"), folder.path().join("two.safetensors"));
/// use brisk_table::{SvmlightOptions, Table, import};
///
/// std::fs::write(&source, "1 1:0.5 3:2 # two of three\n0 2:-3e-2\n")?;
/// let report = import(&source, &dest, &SvmlightOptions::default())?;
/// assert_eq!((report.n_rows, report.column_names.len()), (2, 3));
/// assert_eq!(Table::open(&dest)?.rows::<f32>(0..2)?, [0.5, 0.0, 2.0, 0.0, -0.03, 0.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SvmlightOptions {
    /// The index of the first feature in the file.
    pub first_index: FirstIndex,
    /// The number of features per row. By default, a first pass over the file determines it from the largest index.
    pub n_features: Option<usize>,
    /// What values labels may have.
    pub label_kind: LabelKind,
    /// How values that are given as missing are treated, as in `3:nan`. (A feature that is not given is 0.)
    pub missing: Missing,
    /// The type in which features are stored.
    pub dtype: FeatureDType,
    /// How rows that cannot be read are treated.
    pub bad_rows: BadRows,
    /// A table to match, made from a file of svmlight: first index, number of features, classes, filled-in values and `dtype` are
    /// taken from it. A table with weights, offsets or words for missing values cannot be matched.
    pub like: Option<PathBuf>,
    /// The number of threads that parse, or 0 for one per core. The table does not depend on it.
    pub n_threads: usize,
}

/// The index of the first feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FirstIndex {
    /// 0 if that index occurs in the file, else 1.
    #[default]
    Auto,
    /// 0.
    Zero,
    /// 1.
    One,
}
