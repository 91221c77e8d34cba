use brisk_kernels::GatherIndex;

use crate::error::Error;
use crate::gather::{Pick, PickGradient};
use crate::graph::tensor::Tensor;
use crate::narrow::sizes_around;

const NAME: &str = "index_select";

impl Tensor {
    /// The elements at `indices` along dimension `dim`, in that order. An index may repeat.
    ///
    /// The indices are known when recording. For indices that are computed on the device, see [`gather_rows`](Self::gather_rows)
    /// and [`gather`](Self::gather). The gradient of an element is the sum over all indices that select it, in a fixed order.
    ///
    /// # Shapes
    /// The result has the shape of `self`, except for `indices.len()` along `dim`.
    /// # Errors
    /// [`Error::Shape`] if there is no such dimension, an index is beyond it, or there are no indices.
    /// # Cost
    /// One copy. The gradient compares each element along `dim` with each index, unless `dim` is the first dimension or applying
    /// `indices` twice gives the original order, as for a [`flip`](Self::flip).
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
        let gradient = if is_self_inverse { PickGradient::SameSelection } else { PickGradient::Sum };
        self.graph().apply(Pick { name: NAME, dim, index: GatherIndex::Shared, gradient }, &[self, &index])
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
