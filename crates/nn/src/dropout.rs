use brisk_tensor::Tensor;

use crate::bound::Bound;

/// Dropout, in training graphs: each value is set to 0 with probability `p`, else divided by `1 - p`, with a new mask in each
/// step. It has no parameters.
///
/// The masks follow from the state of the graph that records the layer ([`Graph::state`](brisk_tensor::Graph::state)), which
/// trainers and steps advance, and from the seed of the run: a resumed run draws the same ones, and replicas draw those of one
/// device. Several dropouts of a model draw different ones.
///
/// # Examples
/// ```
/// use brisk_nn::{Activation, Dropout, Linear, ParametersBuilder, Sequential};
///
/// let mut p = ParametersBuilder::new();
/// let model = Sequential(vec![
///     Box::new(Linear::new(&mut p, "hidden", 28, 300, Activation::relu())),
///     Box::new(Dropout::new(0.5)),
///     Box::new(Linear::new(&mut p, "head", 300, 1, Activation::identity())),
/// ]);
/// ```
/// # Reference
/// `torch.nn.Dropout`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dropout {
    p: f32,
    seed: Option<u64>,
}

impl Dropout {
    /// A layer that drops values with probability `p`.
    pub const fn new(p: f32) -> Self {
        Self { p, seed: None }
    }

    /// Sets a seed of its own; by default, that of the graph, which trainers set to that of the run.
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Records the layer.
    ///
    /// # Errors
    /// As [`Tensor::dropout`].
    #[track_caller]
    pub fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        match self.seed {
            Some(seed) => x.dropout_seeded(self.p, seed),
            None => x.dropout(self.p),
        }
    }
}
