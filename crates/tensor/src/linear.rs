use std::rc::Rc;

use brisk_kernels::{Activation, ColumnSum, Epilogue, Matmul, Transpose};

use crate::{Error, Tensor};

impl Tensor {
    /// A linear layer with its bias and activation, in one kernel: `act(self weightᵀ + bias)`.
    ///
    /// An activation whose derivative does not follow from its output (GELU, SiLU) is a kernel of its own, and so is one that
    /// [`Autocast::overrides`](crate::Autocast::overrides) names.
    ///
    /// # Shapes
    /// `self`: `[n_rows, n_in]`; `weight`: `[n_out, n_in]`; `bias`: `[n_out]`; the result `[n_rows, n_out]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.linear`.
    pub fn linear(&self, weight: &Self, bias: Option<&Self>, activation: Activation) -> Result<Self, Error> {
        if self.graph().fuses(activation) {
            self.linear_fused(weight, bias, activation)
        } else {
            self.linear_fused(weight, bias, Activation::Identity)?.activate(activation)
        }
    }

    fn linear_fused(&self, weight: &Self, bias: Option<&Self>, activation: Activation) -> Result<Self, Error> {
        const OP: &str = "linear";
        let graph = self.graph();
        graph.check_own(OP, "weight", weight)?;
        let (m, k) = self.matrix(OP, "x")?;
        let (n, n_in) = weight.matrix(OP, "weight")?;
        if n_in != k {
            let expected = format!("[{n}, {k}], as many columns as the input");
            return Err(Error::Shape { op: OP, arg: "weight", expected, found: weight.shape().to_vec() });
        }
        if let Some(bias) = bias {
            graph.check_own(OP, "bias", bias)?;
            if *bias.shape() != [n] {
                return Err(Error::Shape { op: OP, arg: "bias", expected: format!("[{n}]"), found: bias.shape().to_vec() });
            }
        }
        let epilogue = if bias.is_some() { Epilogue::Bias(activation) } else { Epilogue::Activation(activation) };
        let kernel = Matmul { m, n, k, transpose: Transpose::B, epilogue };
        let (dtype, [input, weight]) = graph.operands(OP, &kernel, [self, weight])?;
        let y = graph.transient(OP, dtype, m * n);
        let args: Vec<_> = [&input, &weight].into_iter().chain(bias).map(Tensor::slice).chain([y]).collect();
        graph.push(kernel, &args)?;

        let (x_id, x, w_id, w, bias_id) = (input.id(), input.slice(), weight.id(), weight.slice(), bias.map(Tensor::id));
        let rule = move |backward: &mut crate::Backward<'_>, dz| {
            if let Some(bias_id) = bias_id.filter(|&id| backward.wants(id)) {
                backward.give(bias_id, ColumnSum { n_rows: m, n_cols: n }, &[dz])?;
            }
            if backward.wants(w_id) {
                let dw = Matmul { m: n, n: k, k: m, transpose: Transpose::A, epilogue: Epilogue::None };
                backward.give(w_id, dw, &[dz, x])?;
            }
            if backward.wants(x_id) {
                let below = backward.fusible(x_id);
                let dx = |epilogue| Matmul { m, n: k, k: n, transpose: Transpose::None, epilogue };
                match below {
                    None => backward.give(x_id, dx(Epilogue::None), &[dz, w])?,
                    Some((below, output)) => {
                        backward.give(x_id, dx(Epilogue::OutputGrad(below)), &[dz, w, output])?;
                        backward.went_through_activation(x_id);
                    }
                }
            }
            Ok(())
        };
        let inputs: Vec<_> = [&input, &weight].into_iter().chain(bias).collect();
        graph.result(OP, &inputs, y, &[m, n], Some(activation), Rc::new(rule))
    }
}
