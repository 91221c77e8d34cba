use std::rc::Rc;

use brisk_kernels::{BceWithLogits, BceWithLogitsGrad, DType, MseLoss, MseLossGrad, Reduction};

use crate::{Error, Tensor};

impl Tensor {
    /// Binary cross-entropy of logits, weighted by row and reduced to one number.
    ///
    /// # Shapes
    /// `self`, `target`, `weight`: the same number of elements; the result has none, `[]`.
    /// # Dtypes
    /// Any for `self`; the rest and the result f32.
    /// # Units
    /// `pos_weight` multiplies the loss of positive rows; 1 leaves it. A mean divides by the sum of weights.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.binary_cross_entropy_with_logits`.
    pub fn bce_with_logits(&self, target: &Self, weight: &Self, reduction: Reduction, pos_weight: f32) -> Result<Self, Error> {
        const OP: &str = "bce_with_logits";
        let (n, graph) = (self.n_elements(), self.graph());
        check_len(OP, "target", self, target, n)?;
        check_len(OP, "weight", self, weight, n)?;
        let kernel = BceWithLogits { n, reduction, pos_weight };
        let (_, [input]) = graph.operands(OP, &kernel, [self])?;
        let loss = graph.transient(OP, DType::F32, 2);
        let (x, t, w) = (input.slice(), target.slice(), weight.slice());
        graph.push(kernel, &[x, t, w, loss])?;
        let x_id = input.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            backward.give(x_id, BceWithLogitsGrad { forward: kernel }, &[dy, x, t, w, loss])
        };
        graph.result(OP, &[&input], loss.slice(0..1), &[], None, Rc::new(rule))
    }

    /// Mean squared error, weighted by row and reduced to one number.
    ///
    /// # Shapes
    /// `self`, `target`: `[n_rows, …]`; `weight`: `[n_rows]`; the result has none, `[]`.
    /// # Dtypes
    /// Any for `self`; the rest and the result f32.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.mse_loss`.
    pub fn mse_loss(&self, target: &Self, weight: &Self, reduction: Reduction) -> Result<Self, Error> {
        const OP: &str = "mse_loss";
        let (n, graph) = (self.n_elements(), self.graph());
        let n_rows = self.shape().first().copied().unwrap_or(1);
        check_len(OP, "target", self, target, n)?;
        check_len(OP, "weight", self, weight, n_rows)?;
        let kernel = MseLoss { n_rows, n_cols: n.checked_div(n_rows).unwrap_or(0), reduction };
        let (_, [input]) = graph.operands(OP, &kernel, [self])?;
        let loss = graph.transient(OP, DType::F32, 2);
        let (x, t, w) = (input.slice(), target.slice(), weight.slice());
        graph.push(kernel, &[x, t, w, loss])?;
        let x_id = input.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            backward.give(x_id, MseLossGrad { forward: kernel }, &[dy, x, t, w, loss])
        };
        graph.result(OP, &[&input], loss.slice(0..1), &[], None, Rc::new(rule))
    }
}

pub(crate) fn check_len(op: &'static str, arg: &'static str, x: &Tensor, other: &Tensor, n: usize) -> Result<(), Error> {
    x.graph().check_own(op, arg, other)?;
    if other.n_elements() == n {
        return Ok(());
    }
    let expected = format!("{n} elements for an input of shape {:?}", x.shape());
    Err(Error::Shape { op, arg, expected, found: other.shape().to_vec() })
}
