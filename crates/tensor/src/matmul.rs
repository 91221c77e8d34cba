use brisk_kernels::{Epilogue, Matmul, Transpose};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// The matrix product `op(self) op(b)`, where `op` transposes or not.
    ///
    /// # Shapes
    /// `self`: `[m, k]`, or `[k, m]` if transposed; `b`: `[k, n]`, or `[n, k]`; the result `[m, n]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.matmul` of two matrices.
    #[track_caller]
    pub fn matmul(&self, b: &Self, transpose: Transpose) -> Self {
        self.graph().apply(Product { name: "matmul", n_dims: 2, transpose }, &[self, b])
    }

    /// A batch of matrix products: `op(self[i]) op(b[i])`, where `op` transposes or not.
    ///
    /// # Shapes
    /// `self`: `[n_batch, m, k]`, or `[n_batch, k, m]` if transposed; `b`: `[n_batch, k, n]`, or `[n_batch, n, k]`; the result
    /// `[n_batch, m, n]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.bmm`.
    #[track_caller]
    pub fn batched_matmul(&self, b: &Self, transpose: Transpose) -> Self {
        self.graph().apply(Product { name: "batched_matmul", n_dims: 3, transpose }, &[self, b])
    }
}

/// A product of two matrices, or of each pair of a batch.
#[derive(Debug)]
struct Product {
    name: &'static str,
    /// 2 for matrices, 3 for a batch of them.
    n_dims: usize,
    transpose: Transpose,
}

impl Product {
    fn kernel(&self, a: [usize; 3], b: [usize; 3]) -> Matmul {
        let ([n_batch, m, k], [_, _, n]) = (transposed(a, self.transpose.a()), transposed(b, self.transpose.b()));
        Matmul { n_batch, m, n, k, transpose: self.transpose, epilogue: Epilogue::none() }
    }

    fn check_dims(&self, x: &Tensor, arg: &'static str) -> Result<[usize; 3], Error> {
        if x.shape().len() == self.n_dims {
            return Ok(pairs(x.shape()));
        }
        let expected = if self.n_dims == 2 { "two dimensions" } else { "three dimensions" }.to_owned();
        Err(Error::Shape { op: self.name, arg, expected, found: x.shape().to_vec() })
    }
}

/// The dimensions of a batch of matrices; a matrix is a batch of one.
fn pairs(shape: &[usize]) -> [usize; 3] {
    let mut dims = [1; 3];
    dims[3 - shape.len()..].copy_from_slice(shape);
    dims
}

impl Operation for Product {
    fn signature(&self) -> Signature {
        Signature { autocast: AutocastRule::Lower, ..Signature::new(self.name, &["a", "b"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (a, b) = (self.check_dims(inputs[0], "a")?, self.check_dims(inputs[1], "b")?);
        let ([n_batch, _, k], [b_batch, b_rows, _]) = (transposed(a, self.transpose.a()), transposed(b, self.transpose.b()));
        if (b_batch, b_rows) != (n_batch, k) {
            let batch = if self.n_dims == 2 { String::new() } else { format!("{n_batch}, ") };
            let expected = if self.transpose.b() { format!("[{batch}_, {k}]") } else { format!("[{batch}{k}, _]") };
            return Err(Error::Shape { op: self.name, arg: "b", expected, found: inputs[1].shape().to_vec() });
        }
        let kernel = self.kernel(a, b);
        check_kernel(&kernel)?;
        Ok([n_batch, kernel.m, kernel.n][3 - self.n_dims..].to_vec())
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let len = |i: usize, dim: usize| inputs[i].shape().get(dim).copied().unwrap_or(1);
        let rows = self.n_dims - 2;
        let batch = (0..rows).map(|dim| len(0, dim));
        batch.chain([len(0, rows + usize::from(self.transpose.a())), len(1, rows + usize::from(!self.transpose.b()))]).collect()
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let kernel = self.kernel(pairs(forward.shape(0)), pairs(forward.shape(1)));
        forward.compute(kernel)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let Matmul { n_batch, m, n, k, transpose, .. } = self.kernel(pairs(backward.shape(0)), pairs(backward.shape(1)));
        let (dy, a, b) = (backward.grad(), backward.input(0), backward.input(1));
        let product = |m, n, k, transpose| Matmul { n_batch, m, n, k, transpose, epilogue: Epilogue::none() };
        if backward.wants(0) {
            // da = dy op(b)ᵀ, transposed if `a` is stored transposed.
            match transpose.a() {
                false => backward.give(0, product(m, k, n, Transpose::of(false, !transpose.b())), &[dy, b])?,
                true => backward.give(0, product(k, m, n, Transpose::of(transpose.b(), true)), &[b, dy])?,
            }
        }
        if backward.wants(1) {
            match transpose.b() {
                false => backward.give(1, product(k, n, m, Transpose::of(!transpose.a(), false)), &[a, dy])?,
                true => backward.give(1, product(n, k, m, Transpose::of(true, transpose.a())), &[dy, a])?,
            }
        }
        Ok(())
    }
}

fn transposed([n_batch, rows, cols]: [usize; 3], is_transposed: bool) -> [usize; 3] {
    if is_transposed { [n_batch, cols, rows] } else { [n_batch, rows, cols] }
}
