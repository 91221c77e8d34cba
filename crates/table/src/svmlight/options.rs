use std::path::PathBuf;

use crate::import::{BadRows, FeatureDType, LabelKind, Missing};

/// How to read a file of svmlight or libsvm. By default, the first index and the number of features are detected.
///
/// A test file may lack the last features of its training file, or some of its classes: pass the training table as [`like`](Self::like), or the same
/// `first_index`, `n_features` and [`LabelKind::Given`] for both files.
///
/// # Examples
/// ```
/// use brisk_table::{FirstIndex, LabelKind, SvmlightOptions};
///
/// let options = SvmlightOptions {
///     first_index: FirstIndex::One,
///     n_features: Some(28),
///     label_kind: LabelKind::Given(vec!["-1".into(), "+1".into()]),
///     ..SvmlightOptions::default()
/// };
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
    /// A table to match, made from a file of svmlight: first index, number of features, classes, filled-in values and `dtype` are taken from it.
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

impl SvmlightOptions {
    /// Everything that determines the table, as text that can be stored and compared.
    pub(super) fn fingerprint(&self) -> String {
        format!("{:?}", Self { n_threads: 0, ..self.clone() })
    }
}
