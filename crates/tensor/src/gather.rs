use brisk_kernels::{Gather, GatherGrad, GatherIndex};

use crate::error::Error;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;
use crate::narrow::sizes_around;

impl Tensor {
    /// The elements that `index` picks along dimension `dim`: for `dim` 1 of three, `y[i, j, k] = x[i, index[i, j, k], k]`.
    ///
    /// An index beyond the last element is read as 0, since a device cannot report it. The gradient of an element is the sum over
    /// the positions that pick it, in a fixed order.
    ///
    /// # Shapes
    /// `index` has as many dimensions as `self`, with the same lengths except along `dim`; the result has the shape of `index`.
    /// # Dtypes
    /// `index` u32.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, or a length along another dimension differs; [`Error::ForeignTensor`];
    /// [`Error::Dtype`] for an index that is not u32.
    /// # Reference
    /// `torch.gather`, which refuses indices beyond the last.
    /// # Examples
    /// ```
    /// use brisk_tensor::Graph;
    ///
    /// // The logit of each row's label.
    /// let graph = Graph::inference("labels");
    /// let logits = graph.constant("logits", &[0.5; 12], &[4, 3]);
    /// let labels = graph.constant_codes("labels", &[2, 0, 1, 1], &[4]);
    /// assert_eq!(logits.gather(1, &labels.unsqueeze(1)).squeeze(1).shape(), [4]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn gather(&self, dim: usize, index: &Self) -> Self {
        if let Err(error) = self.check_dim(NAME, dim) {
            return self.refused(error, index.shape());
        }
        let pick = Pick { name: NAME, dim, index: GatherIndex::Each, gradient: PickGradient::Sum };
        self.graph().apply(pick, &[self, index])
    }
}

const NAME: &str = "gather";

/// Picks elements along a dimension, for [`Tensor::gather`] and [`Tensor::index_select`].
#[derive(Debug)]
pub(crate) struct Pick {
    pub(crate) name: &'static str,
    pub(crate) dim: usize,
    pub(crate) index: GatherIndex,
    pub(crate) gradient: PickGradient,
}

/// How the gradient of a [`Pick`] is computed.
#[derive(Debug)]
pub(crate) enum PickGradient {
    /// Each element sums the gradients of the positions that pick it.
    Sum,
    /// The selection is its own inverse, so its gradient is the same selection.
    SameSelection,
}

impl Pick {
    fn kernel(&self, x: &[usize], index: &[usize]) -> Gather {
        let [n_outer, n_x, n_inner] = sizes_around(x, self.dim);
        let n = match self.index {
            GatherIndex::Shared => index[0],
            _ => index[self.dim],
        };
        Gather { n_outer, n_x, n, n_inner, index: self.index }
    }
}

impl Operation for Pick {
    fn signature(&self) -> Signature {
        Signature { n_operands: 1, ..Signature::new(self.name, &["x", "index"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (x, index) = (inputs[0].shape(), inputs[1].shape());
        if matches!(self.index, GatherIndex::Shared) {
            check_kernel(&self.kernel(x, index))?;
            let mut shape = x.to_vec();
            shape[self.dim] = index[0];
            return Ok(shape);
        }
        let fits = x.len() == index.len() && (0..x.len()).all(|dim| dim == self.dim || x[dim] == index[dim]);
        if !fits {
            let expected = format!("{x:?}, the shape of `x`, except along dimension {}", self.dim);
            return Err(Error::Shape { op: self.name, arg: "index", expected, found: index.to_vec() });
        }
        inputs[1].check_codes(self.name, "index")?;
        check_kernel(&self.kernel(x, index))?;
        Ok(index.to_vec())
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        inputs[usize::from(!matches!(self.index, GatherIndex::Shared))].shape().to_vec()
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(self.kernel(forward.shape(0), forward.shape(1)))
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let forward = self.kernel(backward.shape(0), backward.shape(1));
        let (dy, index) = (backward.grad(), backward.input(1));
        match self.gradient {
            PickGradient::Sum => backward.give(0, GatherGrad { forward }, &[dy, index]),
            PickGradient::SameSelection => backward.give(0, forward, &[dy, index]),
        }
    }
}
