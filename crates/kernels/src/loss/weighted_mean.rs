//! Weighted losses of rows, reduced to one number: the reduction, and the kernels of a loss that is an expression.

use crate::dtype::DType;
use crate::expr::Expr;
use crate::map::map::{Map, MapOutput};
use crate::map::map_input::MapInput;
use crate::reduce::map_reduce::MapReduce;
use crate::reduce::reduce_op::Reducer;

/// How the losses of a batch are reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// `Σ w l / Σ w`: padding rows of weight 0 do not count.
    #[default]
    Mean,
    /// `Σ w l`.
    Sum,
}

impl Reduction {
    /// The kernel that reduces losses that are already weighted to `[loss, divisor]`, over all elements of `shape`.
    pub(super) fn kernel(self, shape: &[usize], inputs: Vec<MapInput>, weighted_loss: Expr, weight: Expr) -> MapReduce {
        let [sum, weights] = [0, 1].map(Expr::input);
        let (exprs, results) = match self {
            Self::Mean => (vec![weighted_loss, weight], vec![sum / &weights, weights]),
            Self::Sum => (vec![weighted_loss], vec![sum, Expr::constant(1.0)]),
        };
        MapReduce { shape: shape.to_vec(), inputs, exprs, op: Reducer::Sum, dims: (0..shape.len()).collect(), results }
    }
}

/// An elementwise loss of predictions `[n_rows, n_cols]` and targets of the same shape, weighted by row.
pub(super) struct RowLoss {
    pub(super) n_rows: usize,
    pub(super) n_cols: usize,
    pub(super) reduction: Reduction,
    /// Of the prediction (input 0) and the target (input 1).
    pub(super) loss: Expr,
    /// The derivative of the loss with respect to the prediction.
    pub(super) slope: Expr,
}

impl RowLoss {
    /// Predictions, targets and weights.
    fn inputs(&self) -> [MapInput; 3] {
        let (rows, elements) = ([self.n_rows, 1], [self.n_rows, self.n_cols]);
        [&elements, &elements, &rows].map(|shape| MapInput::new(shape, DType::F32))
    }

    /// The arguments are predictions, targets, weights, and the result `[loss, divisor]`.
    pub(super) fn forward(&self) -> MapReduce {
        let weight = Expr::input(2);
        self.reduction.kernel(&[self.n_rows, self.n_cols], self.inputs().to_vec(), &weight * &self.loss, weight)
    }

    /// The arguments are the gradient of the loss, predictions, targets, weights, the result of [`forward`](Self::forward), and
    /// the gradient of the predictions.
    pub(super) fn grad(&self) -> Map {
        let [grad_loss, x, target, weight, divisor] = [0, 1, 2, 3, 4].map(Expr::input);
        let slope = self.slope.substitute(&[x, target]);
        let one = MapInput::new(&[1], DType::F32);
        let divisor_input = MapInput { offset: 1, len: 2, ..one.clone() };
        let mut inputs = vec![one];
        inputs.extend(self.inputs());
        inputs.push(divisor_input);
        Map {
            shape: vec![self.n_rows, self.n_cols],
            inputs,
            outputs: vec![MapOutput { expr: grad_loss / divisor * weight * slope, dtype: DType::F32 }],
        }
    }
}
