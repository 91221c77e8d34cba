use std::fmt::Debug;

use brisk_tensor::{Error, Tensor};

use crate::{Bound, CategoricalColumn, Dropout, LayerNorm, Linear, Mlp};

/// A model: what it records for an input, given its parameters in the same graph. Dyn-compatible.
pub trait Module: Debug {
    /// Records the model over `x`.
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` is not what the model takes.
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error>;

    /// The categorical columns that the model takes beside `x`; none unless it says so.
    fn categories(&self) -> &[CategoricalColumn] {
        &[]
    }

    /// Records the model over `x` and the codes of the same rows.
    ///
    /// # Shapes
    /// `categories`: `[n_rows, n_categories]` u32, a column for each of [`categories`](Self::categories).
    /// # Errors
    /// As [`forward`](Self::forward); [`Error::Shape`] if the model does not take such categories, which is all that the default says.
    fn forward_with_categories(&self, params: &Bound, x: &Tensor, categories: &Tensor) -> Result<Tensor, Error> {
        let _ = (params, x);
        let expected = "no categorical columns; take a model with embeddings, or rows without".to_owned();
        Err(Error::Shape { op: "forward", arg: "categories", expected, found: categories.shape().to_vec() })
    }
}

impl Module for Dropout {
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error> {
        Dropout::forward(self, params, x)
    }
}

impl Module for LayerNorm {
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error> {
        LayerNorm::forward(self, params, x)
    }
}

impl Module for Linear {
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error> {
        Linear::forward(self, params, x)
    }
}

impl Module for Mlp {
    fn forward(&self, params: &Bound, x: &Tensor) -> Result<Tensor, Error> {
        Mlp::forward(self, params, x)
    }

    fn categories(&self) -> &[CategoricalColumn] {
        Mlp::categories(self)
    }

    fn forward_with_categories(&self, params: &Bound, x: &Tensor, categories: &Tensor) -> Result<Tensor, Error> {
        Mlp::forward_with_categories(self, params, x, categories)
    }
}
