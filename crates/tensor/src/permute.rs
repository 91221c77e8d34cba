use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Map, MapInput, MapOutput};

use crate::error::Error;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// This tensor with its dimensions in another order: dimension `i` of the result is `dims[i]` of this tensor.
    ///
    /// # Errors
    /// [`Error::Shape`] unless `dims` names each dimension once; [`Error::Dtype`] unless the tensor is f32, f16 or bf16.
    /// # Cost
    /// A copy, since tensors are contiguous; none if only dimensions of length 1 move.
    /// # Reference
    /// `torch.permute`, whose result is a view.
    /// # Examples
    /// ```
    /// use brisk_tensor::Graph;
    ///
    /// let graph = Graph::inference("images");
    /// let nhwc = graph.constant("images", &[0.5; 2 * 8 * 8 * 3], &[2, 8, 8, 3]);
    /// assert_eq!(nhwc.permute(&[0, 3, 1, 2]).shape(), [2, 3, 8, 8]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn permute(&self, dims: &[usize]) -> Self {
        let n_dims = self.shape().len();
        let is_permutation = dims.len() == n_dims && (0..n_dims).all(|dim| dims.contains(&dim));
        if is_permutation {
            let moved: Vec<usize> = dims.iter().copied().filter(|&dim| self.shape()[dim] != 1).collect();
            if moved.is_sorted() {
                return self.reshape(&dims.iter().map(|&dim| self.shape()[dim]).collect::<Vec<_>>());
            }
        }
        self.graph().apply(Permute { dims: dims.to_vec() }, &[self])
    }

    /// This tensor with two of its dimensions swapped.
    ///
    /// # Errors
    /// As [`permute`](Self::permute); [`Error::Shape`] if there is no such dimension.
    /// # Reference
    /// `torch.transpose`.
    #[track_caller]
    pub fn transpose(&self, a: usize, b: usize) -> Self {
        const OP: &str = "transpose";
        if let Err(error) = self.check_dim(OP, a).and_then(|()| self.check_dim(OP, b)) {
            return self.refused(error, self.shape());
        }
        let mut dims: Vec<usize> = (0..self.shape().len()).collect();
        dims.swap(a, b);
        self.permute(&dims)
    }
}

#[derive(Debug)]
struct Permute {
    dims: Vec<usize>,
}

/// The kernel that copies a tensor of `shape` with its dimensions in another order.
fn kernel(shape: &[usize], dims: &[usize]) -> Result<Map, brisk_kernels::Error> {
    let input = MapInput::new(shape, DType::F32).permuted(dims)?;
    let outputs = vec![MapOutput { expr: Expr::input(0), dtype: DType::F32 }];
    Ok(Map { shape: input.shape.clone(), inputs: vec![input], outputs })
}

impl Permute {
    fn kernel(&self, shape: &[usize]) -> Result<Map, Error> {
        Ok(kernel(shape, &self.dims).map_err(brisk_program::Error::from)?)
    }
}

impl Operation for Permute {
    fn signature(&self) -> Signature {
        Signature::new("permute", &["x"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (shape, dims) = (inputs[0].shape(), &self.dims);
        let dtype = inputs[0].dtype();
        if !dtype.is_float() {
            return Err(Error::Dtype { op: "permute", arg: "x", expected: "f32, f16 or bf16; cast it first", found: dtype });
        }
        let kernel = self.kernel(shape).map_err(|_| Error::Shape {
            op: "permute",
            arg: "x",
            expected: format!("{} dimensions, each of which is once in {dims:?}", dims.len()),
            found: shape.to_vec(),
        })?;
        check_kernel(&kernel)?;
        Ok(kernel.shape)
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        forward.compute(self.kernel(forward.shape(0))?)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let mut inverse = vec![0; self.dims.len()];
        for (i, &dim) in self.dims.iter().enumerate() {
            inverse[dim] = i;
        }
        let kernel = Self { dims: inverse }.kernel(backward.output_shape())?;
        let dy = backward.grad();
        backward.give(0, kernel, &[dy])
    }
}
