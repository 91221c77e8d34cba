/// A categorical column, and how it is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoricalColumn {
    /// The number of codes, including code 0 for missing and unknown values.
    pub n_codes: usize,
    /// The dimension of the embedding.
    pub dim: usize,
}

impl CategoricalColumn {
    /// A column whose embedding has half as many dimensions as there are codes, at most 50: an early rule of thumb of fast.ai.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::CategoricalColumn;
    ///
    /// assert_eq!([2, 3, 8, 1000].map(|n_codes| CategoricalColumn::of(n_codes).dim), [1, 2, 4, 50]);
    /// ```
    pub fn of(n_codes: usize) -> Self {
        Self { n_codes, dim: n_codes.div_ceil(2).clamp(1, 50) }
    }
}
