use brisk_kernels::{BatchedMatmul, Transpose};

use crate::operation::check_kernel;
use crate::{AutocastRule, Backward, Error, Forward, Operation, Tensor};

impl Tensor {
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
        self.graph().apply(BatchedProduct { transpose }, &[self, b])
    }
}

#[derive(Debug)]
struct BatchedProduct {
    transpose: Transpose,
}

const NAME: &str = "batched_matmul";

impl BatchedProduct {
    fn kernel(&self, a: [usize; 3], b: [usize; 3]) -> BatchedMatmul {
        let ([n_batch, m, k], [_, _, n]) = (transposed(a, self.transpose.a()), transposed(b, self.transpose.b()));
        BatchedMatmul { n_batch, m, n, k, transpose: self.transpose }
    }
}

impl Operation for BatchedProduct {
    fn name(&self) -> &'static str {
        NAME
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["a", "b"]
    }

    fn autocast_rule(&self) -> AutocastRule {
        AutocastRule::Lower
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (a, b) = (matrices(inputs[0], "a")?, matrices(inputs[1], "b")?);
        let ([n_batch, _, k], [b_batch, b_rows, _]) = (transposed(a, self.transpose.a()), transposed(b, self.transpose.b()));
        if (b_batch, b_rows) != (n_batch, k) {
            let expected = if self.transpose.b() { format!("[{n_batch}, _, {k}]") } else { format!("[{n_batch}, {k}, _]") };
            return Err(Error::Shape { op: NAME, arg: "b", expected, found: inputs[1].shape().to_vec() });
        }
        let kernel = self.kernel(a, b);
        check_kernel(&kernel)?;
        Ok(vec![n_batch, kernel.m, kernel.n])
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let len = |i: usize, dim: usize| inputs[i].shape().get(dim).copied().unwrap_or(1);
        vec![len(0, 0), len(0, 1 + usize::from(self.transpose.a())), len(1, 1 + usize::from(!self.transpose.b()))]
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let kernel = self.kernel(forward.dims(0), forward.dims(1));
        let (a, b, y) = (forward.input(0), forward.input(1), forward.output());
        forward.push(kernel, &[a, b, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let BatchedMatmul { n_batch, m, n, k, transpose } = self.kernel(backward.dims(0), backward.dims(1));
        let (dy, a, b) = (backward.grad(), backward.input(0), backward.input(1));
        let product = |m, n, k, transpose| BatchedMatmul { n_batch, m, n, k, transpose };
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

fn matrices(x: &Tensor, arg: &'static str) -> Result<[usize; 3], Error> {
    let found = x.shape();
    found.try_into().map_err(|_| Error::Shape { op: NAME, arg, expected: "three dimensions".to_owned(), found: found.to_vec() })
}

fn transposed([n_batch, rows, cols]: [usize; 3], is_transposed: bool) -> [usize; 3] {
    if is_transposed { [n_batch, cols, rows] } else { [n_batch, rows, cols] }
}
