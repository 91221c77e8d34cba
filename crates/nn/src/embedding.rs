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
