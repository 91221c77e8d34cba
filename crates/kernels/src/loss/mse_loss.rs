use super::weighted_mean::RowLoss;
use crate::expr::Expr;
use crate::loss::weighted_mean::Reduction;
use crate::map::map::Map;
use crate::reduce::map_reduce::MapReduce;

/// Mean squared error: `Σ_r w[r] Σ_c (x[r,c] - t[r,c])²`, divided by `n_cols Σ w` for a mean.
///
/// # Reference
/// `torch.nn.functional.mse_loss`.
/// # Examples
/// ```
/// use brisk_kernels::{Kernel, MseLoss, Reduction};
///
/// let mse = MseLoss { n_rows: 32, n_cols: 10, reduction: Reduction::Mean };
/// mse.loss().check()?;
/// mse.grad().check()?;
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MseLoss {
    /// Rows.
    pub n_rows: usize,
    /// Columns.
    pub n_cols: usize,
    /// Mean or sum.
    pub reduction: Reduction,
}

impl MseLoss {
    fn row_loss(&self) -> RowLoss {
        let Self { n_rows, n_cols, reduction } = *self;
        let off = Expr::input(0) - Expr::input(1);
        RowLoss { n_rows, n_cols, reduction, loss: &off * &off, slope: 2.0 * off }
    }

    /// The kernel of the loss.
    ///
    /// # Shapes
    /// Its arguments are `x` and `target`, `[n_rows, n_cols]`; `weight`, `[n_rows]`; and `loss`, `[2]`: the reduced loss and its
    /// divisor (1 for a sum).
    /// # Dtypes
    /// f32.
    pub fn loss(&self) -> MapReduce {
        self.row_loss().forward()
    }

    /// The kernel of the gradient of `x`: `grad_loss · 2 w (x - t) / divisor`.
    ///
    /// # Shapes
    /// Its arguments are `grad_loss`, `[1]`; `x` and `target`, `[n_rows, n_cols]`; `weight`, `[n_rows]`; `loss`, `[2]`, as
    /// [`loss`](Self::loss) wrote it; and `grad_x`, `[n_rows, n_cols]`.
    /// # Dtypes
    /// f32.
    pub fn grad(&self) -> Map {
        self.row_loss().grad()
    }
}
