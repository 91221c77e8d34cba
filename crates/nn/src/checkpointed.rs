use brisk_tensor::Tensor;

use crate::bound::Bound;
use crate::module::Module;

/// A module whose activations are recomputed in the backward pass instead of being kept: see
/// [`Graph::checkpoint`](brisk_tensor::Graph::checkpoint). A model of such blocks takes the memory of their results and of the
/// activations of one block.
///
/// # Examples
/// ```
/// use brisk_nn::tensor::Graph;
/// use brisk_nn::{Activation, Checkpointed, Linear, ParametersBuilder, Sequential};
///
/// let mut p = ParametersBuilder::new();
/// let mut block = |i: usize| -> Box<dyn brisk_nn::Module> {
///     let layers = [0, 1].map(|j| Linear::new(&mut p, &format!("{i}.{j}"), 8, 8, Activation::tanh()));
///     let layers = layers.map(|layer| Box::new(layer) as Box<dyn brisk_nn::Module>);
///     Box::new(Checkpointed(Sequential(layers.into())))
/// };
/// let model = Sequential(vec![block(0), block(1)]);
/// let graph = Graph::training("blocks");
/// let y = model.forward(&p.build(1).bind(&graph), &graph.constant("x", &[0.5; 16], &[2, 8]));
/// graph.backward(&y.mean(..))?;
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpointed<M>(pub M);

impl<M: Module> Checkpointed<M> {
    /// Records the module.
    ///
    /// # Errors
    /// Those of the module.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _caller = x.graph().enter_from_caller();
        x.graph().checkpoint(|| self.0.forward(params, x))
    }
}

impl<M: Module> Module for Checkpointed<M> {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        Checkpointed::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        self.0.n_inputs()
    }
}
