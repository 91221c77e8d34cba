use crate::dtype::Element;

/// Rows to be written, part by part. Parts that a table does not have are left empty.
///
/// # Shapes
/// `n` rows; every part is row-major.
/// # Examples
/// ```
/// use brisk_table::RowBatch;
///
/// let two_rows = RowBatch { features: &[0.5_f32, 1.5, 2.5, 3.5], labels: &[0_u8, 1], ..RowBatch::default() };
/// assert!(two_rows.categories.is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RowBatch<'a, F: Element = f32, L: Element = f32> {
    /// `[n, n_cols]`, of the schema's dtype.
    pub features: &'a [F],
    /// `[n, n_categories]`: codes of the columns' dictionaries.
    pub categories: &'a [u32],
    /// `[n, n_labels]`, of the schema's dtype of labels.
    pub labels: &'a [L],
    /// `[n]`
    pub weights: &'a [f32],
}

impl<F: Element, L: Element> Default for RowBatch<'_, F, L> {
    fn default() -> Self {
        Self { features: &[], categories: &[], labels: &[], weights: &[] }
    }
}
