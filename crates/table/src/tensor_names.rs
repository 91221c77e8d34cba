/// The names of a table's tensors in a file; for files written by other programs.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("theirs.safetensors");
/// # let bytes: Vec<u8> = [0.5_f32, 1.5].into_iter().flat_map(f32::to_le_bytes).collect();
/// # let x = safetensors::tensor::TensorView::new(safetensors::Dtype::F32, vec![2], &bytes)?;
/// # std::fs::write(&path, safetensors::serialize([("x", x)], None)?)?;
/// use brisk_table::{LabelsFrom, Table, TensorNames};
///
/// // `x` [n] is one column; there are no labels, as in a set to predict on.
/// let names = TensorNames { features: "x".into(), labels: LabelsFrom::Zero, ..TensorNames::default() };
/// let table = Table::open_named(&path, &names)?;
/// assert_eq!(table.rows::<f32>(0..2)?, [0.5, 1.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorNames {
    /// `[n, …]`, or `[n]` for one column; `features` by default.
    pub features: String,
    /// `[n]` or `[n, k]`; the tensor `labels` by default.
    pub labels: LabelsFrom,
    /// `[n, c]` of `U32`, if there is a tensor of that name; `categories` by default.
    pub categories: String,
    /// `[n]` of `F32`, if there is a tensor of that name; `weights` by default.
    pub weights: String,
}

/// Where labels come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelsFrom {
    /// A tensor of that name. It is an error if there is none.
    Tensor(String),
    /// There are no labels: they are gathered as 0.
    Zero,
}

impl Default for TensorNames {
    fn default() -> Self {
        use crate::format::{CATEGORIES, FEATURES, LABELS, WEIGHTS};
        Self {
            features: FEATURES.to_owned(),
            labels: LabelsFrom::Tensor(LABELS.to_owned()),
            categories: CATEGORIES.to_owned(),
            weights: WEIGHTS.to_owned(),
        }
    }
}
