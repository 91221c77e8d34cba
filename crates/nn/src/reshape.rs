use brisk_tensor::{Error, Tensor};

use crate::bound::Bound;
use crate::module::Module;

/// All dimensions after the first as one: `[n, a, b, c]` becomes `[n, a b c]`.
///
/// Images are NHWC, so a channel is the last to vary: in PyTorch, whose images are NCHW, the columns after `torch.nn.Flatten` are
/// in a different order. To give a [`Linear`](crate::Linear) after it the weights of a model from PyTorch, permute the columns of
/// the weight `[n_out, c h w]` to `[n_out, h w c]`.
///
/// # Errors
/// [`Error::Shape`] for a tensor without dimensions.
/// # Reference
/// `torch.nn.Flatten`.
/// # Examples
/// ```
/// use brisk_nn::tensor::Graph;
/// use brisk_nn::{Flatten, Module, ParametersBuilder, Reshape, Sequential};
///
/// let model = Sequential(vec![Box::new(Reshape::new([28, 28, 1])), Box::new(Flatten)]);
/// let graph = Graph::inference("model");
/// let x = graph.constant("x", &[0.5; 2 * 784], &[2, 784]);
/// let y = model.forward(&ParametersBuilder::new().build(0).bind(&graph), &x);
/// assert_eq!(y.shape(), [2, 784]);
/// graph.check()?;
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Flatten;

/// Reshapes each row to the same number of elements: `[n, …]` becomes `[n, shape…]`, such as images from the columns of a table.
///
/// # Errors
/// [`Error::Shape`] if a row has a different number of elements.
/// # Reference
/// `torch.nn.Unflatten`, for all dimensions after the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reshape {
    shape: Vec<usize>,
}

impl Reshape {
    /// Rows of `shape`: `[height, width, n_channels]` for images.
    pub fn new(shape: impl Into<Vec<usize>>) -> Self {
        Self { shape: shape.into() }
    }
}

impl Module for Flatten {
    #[track_caller]
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        let Some((&n, row)) = x.shape().split_first() else {
            let expected = "a batch, [n, …]".to_owned();
            let error = Error::Shape { op: "flatten", arg: "x", expected, found: Vec::new() };
            return x.graph().failed(error, x.dtype(), &[]);
        };
        x.reshape(&[n, row.iter().product()])
    }
}

impl Module for Reshape {
    #[track_caller]
    fn forward(&self, _: &Bound, x: &Tensor) -> Tensor {
        let wanted: Vec<usize> = x.shape().first().copied().into_iter().chain(self.shape.iter().copied()).collect();
        if x.shape().is_empty() || wanted.iter().try_fold(1_usize, |len, &n| len.checked_mul(n)) != Some(x.n_elements()) {
            let expected = format!("[n, …] with rows of as many elements as {:?}", self.shape);
            let error = Error::Shape { op: "reshape", arg: "x", expected, found: x.shape().to_vec() };
            return x.graph().failed(error, x.dtype(), &wanted);
        }
        x.reshape(&wanted)
    }

    fn n_inputs(&self) -> Option<usize> {
        self.shape.iter().try_fold(1_usize, |len, &n| len.checked_mul(n))
    }
}
