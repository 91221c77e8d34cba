use brisk_kernels::{Gather, GatherGrad, GatherIndex};

use crate::narrow::sizes_around;
use crate::operation::check_kernel;
use crate::{Backward, Error, Forward, Operation, Tensor};

const NAME: &str = "index_select";

impl Tensor {
    /// The elements at `indices` along dimension `dim`, in that order. An index may repeat.
    ///
    /// The indices are known when recording. For indices that are computed on the device, see [`gather_rows`](Self::gather_rows) and [`gather`](Self::gather).
    /// The gradient of an element is the sum over all indices that select it, in a fixed order.
    ///
    /// # Shapes
    /// The result has the shape of `self`, except for `indices.len()` along `dim`.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, an index is beyond it, or there are no indices.
    /// # Cost
    /// One copy. The gradient compares each element along `dim` with each index, unless `dim` is the first dimension or applying `indices` twice gives the original
    /// order, as for a [`flip`](Self::flip).
    /// # Reference
    /// `torch.index_select`.
    /// # Examples
    /// ```
    /// use brisk_tensor::Graph;
    ///
    /// // RGB to BGR, and only these.
    /// let graph = Graph::inference("images");
    /// let rgba = graph.constant("images", &[0.5; 8 * 8 * 4], &[1, 8, 8, 4]);
    /// assert_eq!(rgba.index_select(3, &[2, 1, 0]).shape(), [1, 8, 8, 3]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn index_select(&self, dim: usize, indices: &[u32]) -> Self {
        let mut shape = self.shape().to_vec();
        if let Some(length) = shape.get_mut(dim) {
            *length = indices.len();
        }
        if let Err(error) = self.check_indices(dim, indices) {
            return self.refused(error, &shape);
        }
        let [n_outer, length, n_inner] = sizes_around(self.shape(), dim);
        let is_self_inverse = indices.len() == length && (0..length).all(|i| indices[indices[i] as usize] as usize == i);
        let index = self.graph().constant_codes("indices", indices, &[indices.len()]);
        if n_outer == 1 && !is_self_inverse {
            return self.reshape(&[length, n_inner]).embedding(&index, 0, None).reshape(&shape);
        }
        let gradient = if is_self_inverse { SelectGradient::SameSelection } else { SelectGradient::Sum };
        self.graph().apply(Select { dim, gradient }, &[self, &index])
    }

    fn check_indices(&self, dim: usize, indices: &[u32]) -> Result<(), Error> {
        self.check_dim(NAME, dim)?;
        let found = self.shape();
        if indices.is_empty() {
            return Err(Error::Shape { op: NAME, arg: "indices", expected: "at least one index".to_owned(), found: vec![0] });
        }
        match indices.iter().find(|&&index| index as usize >= found[dim]) {
            None => Ok(()),
            Some(index) => {
                let expected =
                    format!("more than {index} elements along dimension {dim}, the largest valid index being the length minus 1");
                Err(Error::Shape { op: NAME, arg: "x", expected, found: found.to_vec() })
            }
        }
    }
}

#[derive(Debug)]
struct Select {
    dim: usize,
    gradient: SelectGradient,
}

/// How the gradient of a selection is computed.
#[derive(Debug)]
enum SelectGradient {
    /// Each element sums the gradients of the indices that select it.
    Sum,
    /// The selection is its own inverse, so its gradient is the same selection.
    SameSelection,
}

impl Select {
    fn kernel(&self, x: &[usize], index: &[usize]) -> Gather {
        let [n_outer, n_x, n_inner] = sizes_around(x, self.dim);
        Gather { n_outer, n_x, n: index[0], n_inner, index: GatherIndex::Shared }
    }
}

impl Operation for Select {
    fn name(&self) -> &'static str {
        NAME
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x", "index"]
    }

    fn n_operands(&self, _: usize) -> usize {
        1
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (mut shape, index) = (inputs[0].shape().to_vec(), inputs[1].shape());
        check_kernel(&self.kernel(&shape, index))?;
        shape[self.dim] = index[0];
        Ok(shape)
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, index, y) = (forward.input(0), forward.input(1), forward.output());
        forward.push(self.kernel(forward.shape(0), forward.shape(1)), &[x, index, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let forward = self.kernel(backward.shape(0), backward.shape(1));
        let (dy, index) = (backward.grad(), backward.input(1));
        match self.gradient {
            SelectGradient::Sum => backward.give(0, GatherGrad { forward }, &[dy, index]),
            SelectGradient::SameSelection => backward.give(0, forward, &[dy, index]),
        }
    }
}
