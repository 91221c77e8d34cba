use brisk_kernels::{Activation, Epilogue, MapReduce, Matmul, Reducer, Transpose};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::{Tensor, rows_of_last};

impl Tensor {
    /// A linear layer with its bias and activation, in one kernel: `activation(self weightᵀ + bias)`.
    ///
    /// An activation whose derivative cannot be computed from its output (GELU, SiLU; CELU in 16 bits) is recorded as a separate
    /// operation, and so is one that [`Autocast::overrides`](crate::Autocast::overrides) names. Its kernel is fused
    /// with the product's if the backward pass does not read the value in between.
    ///
    /// # Shapes
    /// `self`: `[n_rows, …, n_in]`, at least two dimensions; `weight`: `[n_out, n_in]`; `bias`: `[n_out]`; the result
    /// `[n_rows, …, n_out]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.linear`.
    #[track_caller]
    pub fn linear(&self, weight: &Self, bias: Option<&Self>, activation: Activation) -> Self {
        let inputs: Vec<_> = [self, weight].into_iter().chain(bias).collect();
        self.graph().apply_activated(&activation, |activation| Linear { activation }, &inputs)
    }
}

#[derive(Debug)]
struct Linear {
    activation: Activation,
}

const NAME: &str = "linear";

impl Linear {
    /// The product for `n_rows` rows and a weight of `[n_out, n_in]`.
    fn kernel(&self, n_rows: usize, [n_out, n_in]: [usize; 2], has_bias: bool) -> Matmul {
        let epilogue = if has_bias { Epilogue::bias(&self.activation) } else { Epilogue::activation(&self.activation) };
        Matmul { n_batch: 1, m: n_rows, n: n_out, k: n_in, transpose: Transpose::B, epilogue }
    }
}

impl Operation for Linear {
    fn signature(&self) -> Signature {
        // The bias is added to an f32 sum.
        Signature { autocast: AutocastRule::Lower, n_operands: 2, ..Signature::new(NAME, &["x", "weight", "bias"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let (n_rows, n_cols) = match inputs[0].shape() {
            [] | [_] => inputs[0].matrix(NAME, "x")?,
            shape => rows_of_last(shape),
        };
        let (n_out, n_in) = inputs[1].matrix(NAME, "weight")?;
        if n_in != n_cols {
            let expected = format!("[{n_out}, {n_cols}], as many columns as the input");
            return Err(Error::Shape { op: NAME, arg: "weight", expected, found: inputs[1].shape().to_vec() });
        }
        if let Some(bias) = inputs.get(2) {
            bias.check_shape(NAME, "bias", &[n_out])?;
        }
        check_kernel(&self.kernel(n_rows, [n_out, n_in], inputs.len() > 2))?;
        Ok(self.refused_shape(inputs))
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let [x, weight] = [0, 1].map(|i| inputs[i].shape());
        let n_rows = if x.len() < 2 { x } else { &x[..x.len() - 1] };
        n_rows.iter().chain(weight.first()).copied().collect()
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let kernel = self.kernel(rows_of_last(forward.shape(0)).0, forward.dims(1), forward.n_inputs() > 2);
        forward.compute(kernel)
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dz, x, weight) = (backward.grad(), backward.input(0), backward.input(1));
        let ((m, k), [n, _]) = (rows_of_last(backward.shape(0)), backward.dims(1));
        if backward.n_inputs() > 2 && backward.wants(2) {
            backward.give(2, MapReduce::of(Reducer::Sum, &[m, n], &[0]), &[dz])?;
        }
        if backward.wants(1) {
            backward.give(
                1,
                Matmul { n_batch: 1, m: n, n: k, k: m, transpose: Transpose::A, epilogue: Epilogue::none() },
                &[dz, x],
            )?;
        }
        if backward.wants(0) {
            let dx = |epilogue| Matmul { n_batch: 1, m, n: k, k: n, transpose: Transpose::None, epilogue };
            backward.give_product(0, dx, &[dz, weight])?;
        }
        Ok(())
    }

    fn output_activation(&self) -> Option<Activation> {
        Some(self.activation.clone())
    }
}
