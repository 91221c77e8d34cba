use crate::import::{BadRows, FeatureDType, LabelKind, Missing};

/// How to read a file of svmlight or libsvm; the default finds out what the first index is and how many features there are.
///
/// A test file need not have the last features of its training file, nor all its classes: give both files the same `first_index`,
/// `n_features` and [`LabelKind::Given`].
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
    /// What the first feature is called in the file.
    pub first_index: FirstIndex,
    /// How many features a row has; found out by default, by a first pass over the file: as many as the largest index asks for.
    pub n_features: Option<usize>,
    /// What a label may be.
    pub label_kind: LabelKind,
    /// What becomes of values that are given as missing, as in `3:nan`. (A feature that is not given is 0.)
    pub missing: Missing,
    /// What features are stored as.
    pub dtype: FeatureDType,
    /// What becomes of rows that cannot be read.
    pub bad_rows: BadRows,
    /// How many threads parse; 0 for one a core. The table is the same for any number.
    pub n_threads: usize,
}

/// What the first feature is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum FirstIndex {
    /// 0 if that index is in the file, else 1.
    #[default]
    Auto,
    /// 0.
    Zero,
    /// 1.
    One,
}

impl SvmlightOptions {
    /// What decides the table, as text that can be kept and compared.
    pub(super) fn fingerprint(&self) -> String {
        format!("{:?}", Self { n_threads: 0, ..self.clone() })
    }
}
