use brisk_kernels::{Affine, DType, LayerNorm, LayerNormGrad, MapReduce, Reducer};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::{Tensor, rows_of_last};

impl Tensor {
    /// Normalises along the last dimension: `(x - mean) / √(var + eps)`, times `weight` plus `bias`, if given.
    ///
    /// # Shapes
    /// `self`: `[…, n_cols]`, the result likewise; `weight`, `bias`: `[n_cols]`.
    /// # Errors
    /// [`Error::Shape`], also for a bias without a weight; [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.layer_norm` over the last dimension.
    #[track_caller]
    pub fn layer_norm(&self, weight: Option<&Self>, bias: Option<&Self>, eps: f32) -> Self {
        if let (None, Some(bias)) = (weight, bias) {
            let expected = "a weight with it; pass one of ones".to_owned();
            let error = Error::Shape { op: NAME, arg: "bias", expected, found: bias.shape().to_vec() };
            return self.refused(error, self.shape());
        }
        let inputs: Vec<_> = [self].into_iter().chain(weight).chain(bias).collect();
        self.graph().apply(Normalisation { eps }, &inputs)
    }
}

const NAME: &str = "layer_norm";

#[derive(Debug)]
struct Normalisation {
    eps: f32,
}

impl Normalisation {
    fn kernel(&self, x: &[usize], n_inputs: usize) -> LayerNorm {
        let (n_rows, n_cols) = rows_of_last(x);
        let affine = match n_inputs {
            1 => Affine::None,
            2 => Affine::Weight,
            _ => Affine::WeightAndBias,
        };
        LayerNorm { n_rows, n_cols, eps: self.eps, affine }
    }
}

impl Operation for Normalisation {
    fn signature(&self) -> Signature {
        Signature { autocast: AutocastRule::Full, n_operands: 1, ..Signature::new(NAME, &["x", "weight", "bias"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = inputs[0].shape();
        let kernel = self.kernel(shape, inputs.len());
        for (arg, input) in ["weight", "bias"].into_iter().zip(&inputs[1..]) {
            input.check_len(NAME, arg, shape, kernel.n_cols)?;
        }
        check_kernel(&kernel)?;
        Ok(shape.to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let kernel = self.kernel(forward.shape(0), forward.n_inputs());
        let (y, stats) = (forward.output(), forward.transient("stats", DType::F32, 2 * kernel.n_rows));
        forward.save(stats);
        forward.push(kernel, &[&forward.inputs()[..], &[y, stats]].concat())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let n_inputs = backward.n_inputs();
        let forward = self.kernel(backward.shape(0), n_inputs);
        let LayerNorm { n_rows, n_cols, .. } = forward;
        let (dy, x, stats) = (backward.grad(), backward.input(0), backward.saved(0));
        if n_inputs > 2 && backward.wants(2) {
            backward.give(2, MapReduce::of(Reducer::Sum, &[n_rows, n_cols], &[0]), &[dy])?;
        }
        if n_inputs > 1 && backward.wants(1) {
            backward.give(1, forward.weight_grad(), &[dy, x, stats, stats])?;
        }
        if backward.wants(0) {
            let weight = (n_inputs > 1).then(|| backward.input(1));
            let args: Vec<_> = [dy, x].into_iter().chain(weight).chain([stats]).collect();
            backward.give(0, LayerNormGrad { forward }, &args)?;
        }
        Ok(())
    }
}
