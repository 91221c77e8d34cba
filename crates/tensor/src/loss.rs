use brisk_kernels::{BceWithLogits, DType, Interval, MseLoss, Outside, Reduction};

use crate::error::Error;
use crate::graph::backward::Backward;
use crate::graph::operation::check_kernel;
use crate::graph::operation::{AutocastRule, Forward, Operation};
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
        let n = self.n_elements();
        self.graph().apply(BceWithLogits { n, reduction, pos_weight }, &[self, target, weight])
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
        self.graph().apply(MseLoss { n_rows, n_cols, reduction }, &[self, target, weight])
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

impl Operation for BceWithLogits {
    fn name(&self) -> &'static str {
        "bce_with_logits"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x", "target", "weight"]
    }

    fn autocast_rule(&self) -> AutocastRule {
        AutocastRule::Full
    }

    fn n_operands(&self, _: usize) -> usize {
        1
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        for (arg, input) in [("target", inputs[1]), ("weight", inputs[2])] {
            input.check_len("bce_with_logits", arg, inputs[0].shape(), self.n)?;
        }
        check_lengths(self.name(), inputs)?;
        check_settings(self.name(), &[("pos_weight", self.pos_weight, Interval::NonNegative)])?;
        check_kernel(&self.loss())?;
        Ok(Vec::new())
    }

    fn refused_shape(&self, _: &[&Tensor]) -> Vec<usize> {
        Vec::new()
    }

    fn output_dtype(&self, _: DType) -> DType {
        DType::F32
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let loss = forward.output_with_scratch(N_SCRATCH);
        forward.save(loss);
        forward.push(self.loss(), &[&forward.inputs()[..], &[loss]].concat())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let args = [backward.grad(), backward.input(0), backward.input(1), backward.input(2), backward.saved(0)];
        backward.give(0, self.grad(), &args)
    }
}

impl Operation for MseLoss {
    fn name(&self) -> &'static str {
        "mse_loss"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x", "target", "weight"]
    }

    fn autocast_rule(&self) -> AutocastRule {
        AutocastRule::Full
    }

    fn n_operands(&self, _: usize) -> usize {
        1
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        inputs[1].check_len("mse_loss", "target", inputs[0].shape(), inputs[0].n_elements())?;
        inputs[2].check_len("mse_loss", "weight", inputs[0].shape(), self.n_rows)?;
        check_lengths(self.name(), inputs)?;
        check_kernel(&self.loss())?;
        Ok(Vec::new())
    }

    fn refused_shape(&self, _: &[&Tensor]) -> Vec<usize> {
        Vec::new()
    }

    fn output_dtype(&self, _: DType) -> DType {
        DType::F32
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let loss = forward.output_with_scratch(N_SCRATCH);
        forward.save(loss);
        forward.push(self.loss(), &[&forward.inputs()[..], &[loss]].concat())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let args = [backward.grad(), backward.input(0), backward.input(1), backward.input(2), backward.saved(0)];
        backward.give(0, self.grad(), &args)
    }
}
