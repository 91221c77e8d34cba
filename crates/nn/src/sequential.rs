use brisk_tensor::{Activation, Tensor};

use crate::bound::Bound;
use crate::module::Module;

/// Modules in sequence.
///
/// # Examples
/// ```
/// use brisk_nn::tensor::{Graph, Pool2d};
/// use brisk_nn::{Activation, BatchNorm, BatchNormConfig, Conv2d, Conv2dConfig, GlobalAvgPool2d};
/// use brisk_nn::{Linear, MaxPool2d, ParametersBuilder, Sequential};
///
/// let mut p = ParametersBuilder::new();
/// let conv = Conv2dConfig { padding: [1, 1], ..Conv2dConfig::square(3, 8, 3) };
/// let norm = BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(8) };
/// let model = Sequential(vec![
///     Box::new(Conv2d::new(&mut p, "conv", &conv)),
///     Box::new(BatchNorm::new(&mut p, "norm", &norm)),
///     Box::new(MaxPool2d(Pool2d::square(2))),
///     Box::new(GlobalAvgPool2d),
///     Box::new(Linear::new(&mut p, "head", 8, 10, Activation::identity())),
/// ]);
/// let graph = Graph::inference("scores");
/// let x = graph.constant("x", &vec![0.5; 2 * 6 * 6 * 3], &[2, 6, 6, 3]);
/// let scores = model.forward(&p.build(1).bind(&graph), &x);
/// assert_eq!(scores.shape(), [2, 10]);
/// graph.check()?;
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug)]
pub struct Sequential(pub Vec<Box<dyn Module>>);

impl Sequential {
    /// Records the modules in order.
    ///
    /// # Errors
    /// Those of the modules.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let _caller = x.graph().enter_from_caller();
        self.0.iter().fold(x.clone(), |x, module| module.forward(params, &x))
    }
}

impl Module for Sequential {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        Sequential::forward(self, params, x)
    }

    fn n_inputs(&self) -> Option<usize> {
        self.0.first()?.n_inputs()
    }
}

impl Module for Activation {
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        x.activate(self.clone())
    }
}
