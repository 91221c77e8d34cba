use brisk_kernels::{Epilogue, Matmul, Transpose};

use crate::operation::check_kernel;
use crate::{AutocastRule, Backward, Error, Forward, Operation, Tensor};

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
        self.graph().apply(Product { transpose }, &[self, b])
    }
}

#[derive(Debug)]
struct Product {
    transpose: Transpose,
}

const NAME: &str = "matmul";

impl Product {
    fn kernel(&self, a: [usize; 2], b: [usize; 2]) -> Matmul {
        let ([m, k], [_, n]) = (transposed(a, self.transpose.a()), transposed(b, self.transpose.b()));
        Matmul { m, n, k, transpose: self.transpose, epilogue: Epilogue::none() }
    }
}

impl Operation for Product {
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
        let (a, b) = (inputs[0].matrix(NAME, "a")?, inputs[1].matrix(NAME, "b")?);
        let ([_, k], [b_rows, _]) = (transposed([a.0, a.1], self.transpose.a()), transposed([b.0, b.1], self.transpose.b()));
        if b_rows != k {
            let expected = if self.transpose.b() { format!("[_, {k}]") } else { format!("[{k}, _]") };
            return Err(Error::Shape { op: NAME, arg: "b", expected, found: inputs[1].shape().to_vec() });
        }
        let kernel = self.kernel([a.0, a.1], [b.0, b.1]);
        check_kernel(&kernel)?;
        Ok(vec![kernel.m, kernel.n])
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let len = |i: usize, dim: usize| inputs[i].shape().get(dim).copied().unwrap_or(1);
        vec![len(0, usize::from(self.transpose.a())), len(1, usize::from(!self.transpose.b()))]
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let kernel = self.kernel(forward.dims(0), forward.dims(1));
        let (a, b, y) = (forward.input(0), forward.input(1), forward.output());
        forward.push(kernel, &[a, b, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let Matmul { m, n, k, transpose, .. } = self.kernel(backward.dims(0), backward.dims(1));
        let (dy, a, b) = (backward.grad(), backward.input(0), backward.input(1));
        let product = |m, n, k, transpose| Matmul { m, n, k, transpose, epilogue: Epilogue::none() };
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

fn transposed([rows, cols]: [usize; 2], is_transposed: bool) -> [usize; 2] {
    if is_transposed { [cols, rows] } else { [rows, cols] }
}
