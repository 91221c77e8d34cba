use brisk_tensor::Tensor;

use crate::{Bound, Init, ParameterId, ParametersBuilder};

/// A table with a trained row for each code of a categorical column.
///
/// # Shapes
/// `weight`: `[n_entries, dim]`.
/// # Reference
/// `torch.nn.Embedding`, whose starting values it has.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    weight: ParameterId,
    padding: Option<usize>,
}

/// A categorical column, and how it is embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CategoricalColumn {
    /// How many codes there are, code 0, for what is missing or unknown, among them.
    pub n_codes: usize,
    /// Numbers that stand for a code.
    pub dim: usize,
}

impl CategoricalColumn {
    /// As many numbers a code as fast.ai once took by rule: half of the codes, at most 50.
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

impl Embedding {
    /// Adds `name.weight` to the parameters.
    pub fn new(params: &mut ParametersBuilder, name: &str, n_entries: usize, dim: usize) -> Self {
        Self::add(params, name, n_entries, dim, None)
    }

    /// The same with an entry that starts as zeros and gets no gradient: PyTorch's `padding_idx`.
    pub fn with_padding(params: &mut ParametersBuilder, name: &str, n_entries: usize, dim: usize, padding: usize) -> Self {
        Self::add(params, name, n_entries, dim, Some(padding))
    }

    fn add(params: &mut ParametersBuilder, name: &str, n_entries: usize, dim: usize, padding: Option<usize>) -> Self {
        let weight = params.add(format!("{name}.weight"), &[n_entries, dim], Init::Embedding { dim, padding });
        Self { weight, padding }
    }

    /// Records the look-up of the codes in column `index_col` of `index`.
    ///
    /// # Shapes
    /// `index`: `[n]`, or `[n, n_cols]`, u32; the result `[n, dim]`.
    /// # Errors
    /// As [`Tensor::embedding`].
    #[track_caller]
    pub fn forward(&self, params: &Bound, index: &Tensor, index_col: usize) -> Tensor {
        let _scope = params.enter(self.weight);
        params.tensor(self.weight).embedding(index, index_col, self.padding)
    }
}
