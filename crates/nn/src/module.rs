use std::fmt::Debug;

use brisk_tensor::Tensor;

use crate::bound::Bound;
use crate::dropout::Dropout;
use crate::layer_norm::LayerNorm;
use crate::linear::Linear;

/// A model: it records itself for an input, given its parameters in the same graph; a model of tables reads the
/// [categories](Bound::categories) there. Dyn-compatible.
///
/// A module holds sizes and settings, not tensors, so it can be shared by threads that each record a graph.
pub trait Module: Debug + Send + Sync {
    /// Records the model for `x`. Like all recording, it returns no error; an implementation composes operations, and reports
    /// invalid arguments with [`Graph::failed`](brisk_tensor::Graph::failed).
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if the model does not take the shape of `x`.
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor;

    /// The number of columns of `x`, `[n_rows, n_inputs]`, that the model takes, so that the error for a different number is
    /// about the rows; `None`, the default, if the model does not know.
    fn n_inputs(&self) -> Option<usize> {
        None
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
