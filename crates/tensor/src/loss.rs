use brisk_kernels::{BceWithLogits, DType, Interval, Map, MapReduce, MseLoss, Outside, Reduction};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

impl Tensor {
    /// Binary cross-entropy of logits, weighted by row and reduced to a single number.
    ///
    /// # Shapes
    /// `self`, `target`, `weight`: the same, apart from dimensions of length 1; the result has no dimensions, `[]`.
    /// # Dtypes
    /// Any for `self`; the others and the result f32.
    /// # Units
    /// `pos_weight` multiplies the loss of positive rows; 1 leaves it as it is. A mean divides by the sum of the weights.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Refused`] if `pos_weight` is negative or not finite.
    /// # Reference
    /// `torch.nn.functional.binary_cross_entropy_with_logits`.
    #[track_caller]
    pub fn bce_with_logits(&self, target: &Self, weight: &Self, reduction: Reduction, pos_weight: f32) -> Self {
        if let Err(error) = check_settings("bce_with_logits", &[("pos_weight", pos_weight, Interval::NonNegative)]) {
            return self.graph().failed(error, DType::F32, &[]);
        }
        let kernels = BceWithLogits { n: self.n_elements(), reduction, pos_weight };
        let (n_weights, loss, grad) = (kernels.n, kernels.loss(), kernels.grad());
        self.graph().apply(WeightedLoss { name: "bce_with_logits", n_weights, loss, grad }, &[self, target, weight])
    }

    /// Mean squared error, weighted by row and reduced to a single number.
    ///
    /// # Shapes
    /// `self`, `target`: `[n_rows, …]`, the same apart from dimensions of length 1; `weight`: `[n_rows]`; the result has no
    /// dimensions, `[]`.
    /// # Dtypes
    /// Any for `self`; the others and the result f32.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.mse_loss`.
    #[track_caller]
    pub fn mse_loss(&self, target: &Self, weight: &Self, reduction: Reduction) -> Self {
        let n_rows = self.shape().first().copied().unwrap_or(1);
        let n_cols = self.n_elements().checked_div(n_rows).unwrap_or(0);
        let kernels = MseLoss { n_rows, n_cols, reduction };
        let (loss, grad) = (kernels.loss(), kernels.grad());
        self.graph().apply(WeightedLoss { name: "mse_loss", n_weights: n_rows, loss, grad }, &[self, target, weight])
    }
}

/// Checks that target and prediction have the same dimensions, apart from those of length 1: these losses do not broadcast.
fn check_lengths(op: &'static str, inputs: &[&Tensor]) -> Result<(), Error> {
    let [x, target] = [0, 1].map(|i| inputs[i].shape().iter().filter(|len| **len != 1));
    if x.eq(target) { Ok(()) } else { inputs[0].check_target(op, inputs[1]) }
}

/// Checks numbers that a loss is given, each with the interval that it must be in.
pub(crate) fn check_settings(op: &'static str, settings: &[(&'static str, f32, Interval)]) -> Result<(), Error> {
    let refused = |Outside { name, found, expected, .. }| Error::Refused { op, found: format!("{name} = {found}"), expected };
    settings.iter().try_for_each(|&(name, value, interval)| interval.check(name, value).map_err(refused))
}

/// The dimension without which the first shape is the second.
fn squeezed_to(from: &[usize], to: &[usize]) -> Option<usize> {
    (0..from.len()).find(|&dim| from[dim] == 1 && [&from[..dim], &from[dim + 1..]].concat() == to)
}

impl Tensor {
    /// Checks that a target has the shape of this prediction.
    pub(crate) fn check_target(&self, op: &'static str, target: &Self) -> Result<(), Error> {
        let (shape, found) = (self.shape(), target.shape());
        if shape == found {
            return Ok(());
        }
        let way_out = match (squeezed_to(shape, found), squeezed_to(found, shape)) {
            (Some(dim), _) => format!("; take `squeeze({dim})` of the prediction"),
            (_, Some(dim)) => format!("; take `squeeze({dim})` of the target"),
            _ => "; `expand` repeats a target".to_owned(),
        };
        let expected = format!("{shape:?}, that of the prediction{way_out}");
        Err(Error::Shape { op, arg: "target", expected, found: found.to_vec() })
    }
}

/// The number that the kernels of losses write after the loss: the divisor of a mean.
const N_SCRATCH: usize = 1;

/// A loss by two kernels, weighted by row.
#[derive(Debug)]
struct WeightedLoss {
    name: &'static str,
    n_weights: usize,
    loss: MapReduce,
    grad: Map,
}

impl Operation for WeightedLoss {
    fn signature(&self) -> Signature {
        let (autocast, dtype) = (AutocastRule::Full, Some(DType::F32));
        Signature { autocast, n_operands: 1, dtype, ..Signature::new(self.name, &["x", "target", "weight"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        for (arg, i, n) in [("target", 1, inputs[0].n_elements()), ("weight", 2, self.n_weights)] {
            inputs[i].check_len(self.name, arg, inputs[0].shape(), n)?;
        }
        check_lengths(self.name, inputs)?;
        check_kernel(&self.loss)?;
        Ok(Vec::new())
    }

    fn refused_shape(&self, _: &[&Tensor]) -> Vec<usize> {
        Vec::new()
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let loss = forward.output_with_scratch(N_SCRATCH);
        forward.save(loss);
        forward.push(self.loss.clone(), &[&forward.inputs()[..], &[loss]].concat())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let args = [backward.grad(), backward.input(0), backward.input(1), backward.input(2), backward.saved(0)];
        backward.give(0, self.grad.clone(), &args)
    }
}
