use super::weighted_mean::RowLoss;
use crate::expr::Expr;
use crate::loss::weighted_mean::Reduction;
use crate::map::map::Map;
use crate::reduce::map_reduce::MapReduce;

/// Binary cross-entropy of logits: `l = (1 - t) x + (1 + (p - 1) t) log(1 + exp(-x))`, weighted by row and reduced.
///
/// # Reference
/// `torch.nn.functional.binary_cross_entropy_with_logits`; its mean divides by `n`, this one by the sum of the weights.
/// # Examples
/// ```
/// use brisk_kernels::{BceWithLogits, Kernel, Reduction};
///
/// let bce = BceWithLogits { n: 32, reduction: Reduction::Mean, pos_weight: 1.0 };
/// bce.loss().check()?;
/// bce.grad().check()?;
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BceWithLogits {
    /// Rows.
    pub n: usize,
    /// Mean or sum.
    pub reduction: Reduction,
    /// `p`, the weight of positive rows; 1 for no weighting.
    pub pos_weight: f32,
}

impl BceWithLogits {
    /// `1 + (p - 1) t`, the weight of `log(1 + exp(-x))` at target `t`.
    fn weight_of_softplus(&self, target: &Expr) -> Expr {
        1.0 + (self.pos_weight - 1.0) * target
    }

    fn row_loss(&self) -> RowLoss {
        let [x, target] = [0, 1].map(Expr::input);
        let softplus = (-&x).relu() + (-x.abs()).exp().log1p();
        let loss = (1.0 - &target) * x + self.weight_of_softplus(&target) * softplus;
        let slope = (1.0 - &target) - self.weight_of_softplus(&target) * (-Expr::input(0)).sigmoid();
        RowLoss { n_rows: self.n, n_cols: 1, reduction: self.reduction, loss, slope }
    }

    /// The kernel of the loss.
    ///
    /// # Shapes
    /// Its arguments are `logits`, `target` and `weight`, `[n]`, and `loss`, `[2]`: the reduced loss and its divisor (1 for a
    /// sum).
    /// # Dtypes
    /// f32; targets lie in 0..=1.
    pub fn loss(&self) -> MapReduce {
        self.row_loss().forward()
    }

    /// The kernel of the gradient of `logits`: `grad_loss w ((1 - t) - (1 + (p - 1) t) σ(-x)) / divisor`.
    ///
    /// # Shapes
    /// Its arguments are `grad_loss`, `[1]`; `logits`, `target` and `weight`, `[n]`; `loss`, `[2]`, as [`loss`](Self::loss) wrote
    /// it; and `grad_logits`, `[n]`.
    /// # Dtypes
    /// f32.
    pub fn grad(&self) -> Map {
        self.row_loss().grad()
    }
}
