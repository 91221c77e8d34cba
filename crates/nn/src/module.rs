use std::fmt::Debug;

use brisk_tensor::{Error, Tensor};

use crate::dropout::Dropout;
use crate::embedding::CategoricalColumn;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;
use crate::mlp::Mlp;
use crate::parameters::Bound;

/// A model: it records itself for an input, given its parameters in the same graph. Dyn-compatible.
///
/// A module holds sizes and settings, not tensors, so it can be shared by threads that each record a graph.
pub trait Module: Debug + Send + Sync {
    /// Records the model for `x`. Like all recording, it returns no error; an implementation composes operations, and reports invalid arguments with
    /// [`Graph::failed`](brisk_tensor::Graph::failed).
    ///
    /// # Errors
    /// [`Error::Shape`] if the model does not take the shape of `x`.
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor;

    /// The number of columns of `x`, `[n_rows, n_inputs]`, that the model takes, so that the error for a different number is about the rows; `None`, the
    /// default, if the model does not know.
    fn n_inputs(&self) -> Option<usize> {
        None
    }

    /// The categorical columns that the model takes besides `x`; none by default.
    fn categories(&self) -> &[CategoricalColumn] {
        &[]
    }

    /// Records the model for `x` and the codes of the same rows.
    ///
    /// # Shapes
    /// `categories`: `[n_rows, n_categories]` u32, a column for each of [`categories`](Self::categories).
    /// # Errors
    /// As [`forward`](Self::forward); [`Error::Shape`] if the model does not take such categories. The default always returns this error.
    fn forward_with_categories(&self, params: &Bound, x: &Tensor, categories: &Tensor) -> Tensor {
        let expected = "no categorical columns; take a model with embeddings, or rows without".to_owned();
        let error = Error::Shape { op: "forward", arg: "categories", expected, found: categories.shape().to_vec() };
        let _ = params;
        x.graph().failed(error, x.dtype(), x.shape())
    }
}

impl<M: Module + ?Sized> Module for Box<M> {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        (**self).forward(params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        (**self).n_inputs()
    }

    fn categories(&self) -> &[CategoricalColumn] {
        (**self).categories()
    }

    #[track_caller]
    fn forward_with_categories(&self, params: &Bound, x: &Tensor, categories: &Tensor) -> Tensor {
        (**self).forward_with_categories(params, x, categories)
    }
}

impl Module for Dropout {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        Dropout::forward(self, params, x)
    }
}

impl Module for LayerNorm {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        LayerNorm::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(LayerNorm::n_cols(self))
    }
}

impl Module for Linear {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        Linear::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(Linear::n_in(self))
    }
}

impl Module for Mlp {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        Mlp::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        Some(Mlp::n_inputs(self))
    }

    fn categories(&self) -> &[CategoricalColumn] {
        Mlp::categories(self)
    }

    #[track_caller]
    fn forward_with_categories(&self, params: &Bound, x: &Tensor, categories: &Tensor) -> Tensor {
        Mlp::forward_with_categories(self, params, x, categories)
    }
}
