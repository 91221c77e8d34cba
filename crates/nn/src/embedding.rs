use brisk_tensor::Tensor;

use crate::bound::Bound;
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// A table with a trained row for each code of a categorical column.
///
/// # Shapes
/// `weight`: `[n_entries, dim]`.
/// # Reference
/// `torch.nn.Embedding`, with the same initial distribution.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    weight: ParameterId,
    padding: Option<usize>,
}

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

impl Embedding {
    /// Adds `name.weight` to the parameters.
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_entries: usize, dim: usize) -> Self {
        Self::add(params, name, n_entries, dim, None)
    }

    /// [`new`](Self::new) with an entry that starts as zeros and gets no gradient: PyTorch's `padding_idx`.
    #[track_caller]
    pub fn with_padding(params: &mut ParametersBuilder, name: &str, n_entries: usize, dim: usize, padding: usize) -> Self {
        Self::add(params, name, n_entries, dim, Some(padding))
    }

    #[track_caller]
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
