//! The weights of the rows of a batch, for operations that take statistics over its rows.

use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, MapReduce, Reducer};
use brisk_program::Slice;

use crate::error::Error;
use crate::graph::Graph;
use crate::graph::row_weights::{EpochRows, RowWeights};
use crate::graph::tensor::Tensor;
use crate::reduce::broadcast;

/// The weights of the rows of one normalisation.
#[derive(Debug, Clone)]
pub(crate) struct NormWeights {
    /// `[n]`, as they were set.
    pub(crate) weights: Slice,
    /// `[n]`: the weights add up to 1 in each group, or to 0 in a group without rows.
    pub(crate) shares: Slice,
}

impl Graph {
    /// From here on, statistics of a batch weigh its row `i` by `weights[i]`, so that rows of weight 0 count as absent: in
    /// [batch normalisation](Tensor::batch_norm), also of ghost batches and of all [replicas](Self::synchronise_batch_norm). A
    /// tensor with `k` times as many rows has `k` consecutive ones for each row of the batch, such as the pixels of an image. If
    /// it has them in another order, such as two views of the batch one after the other, set the weights in that order first.
    ///
    /// Without this call all rows count alike, and no kernel is recorded for their weights.
    ///
    /// # Shapes
    /// `weights`: `[n]`, the rows of [`EpochRows::part`], not negative.
    /// # Errors
    /// [`Error::Shape`], [`Error::Dtype`] unless the weights are f32, [`Error::ForeignTensor`].
    #[track_caller]
    pub fn set_row_weights(&self, weights: &Tensor, epoch: &EpochRows) {
        const OP: &str = "set_row_weights";
        let n = epoch.part.len();
        let checked = self.check_own(OP, "weights", weights).and_then(|()| match weights.shape() == [n] {
            false => Err(Error::Shape { op: OP, arg: "weights", expected: format!("[{n}]"), found: weights.shape().to_vec() }),
            true if weights.dtype() == DType::F32 => Ok(()),
            true => Err(Error::Dtype { op: OP, arg: "weights", expected: "f32", found: weights.dtype() }),
        });
        match checked {
            Err(error) => self.fail(error),
            Ok(()) if weights.is_failed() => {}
            Ok(()) => {
                let weights = RowWeights { weights: weights.slice(), epoch: epoch.clone(), shares: Vec::new() };
                self.inner_mut().row_weights = Some(weights);
            }
        }
    }

    /// The weights of the rows of `x`, which the operation `op` normalises in `n_groups` groups; `is_shared` if with the rows of
    /// other replicas.
    pub(crate) fn norm_weights(
        &self,
        op: &'static str,
        x: &Tensor,
        n_groups: usize,
        is_shared: bool,
    ) -> Result<Option<NormWeights>, Error> {
        let Some(RowWeights { weights, epoch, shares }) = self.inner().row_weights.clone() else { return Ok(None) };
        let n = weights.len();
        let (n_rows, _) = x.rows_of_last();
        if !x.shape()[0].is_multiple_of(n) || !n.is_multiple_of(n_groups) {
            let expected = format!(
                "a first dimension that is a multiple of {n}, the rows of the batch, and groups that divide these; set the weights of other rows (`Graph::set_row_weights`)"
            );
            return Err(Error::Shape { op, arg: "x", expected, found: x.shape().to_vec() });
        }
        let (n_last, group_rows) =
            if is_shared { (epoch.n_last(), epoch.batch_rows) } else { (epoch.n_last_of_part(), n / n_groups) };
        if n_last % group_rows * (n_rows / n) == 1 {
            return Err(Error::OneValue { op, n_rows: epoch.n_rows, batch_rows: epoch.batch_rows, n_last: epoch.n_last() });
        }
        if let Some(&(_, shares)) = shares.iter().find(|(groups, _)| *groups == n_groups) {
            return Ok(Some(NormWeights { weights, shares }));
        }
        let [total, shares] = [("total", n_groups), ("row_shares", n)].map(|(name, len)| self.transient(name, DType::F32, len));
        let shape = [n_groups, n / n_groups];
        self.try_push(MapReduce::of(Reducer::Sum, &shape, &[1]), &[weights, total])?;
        let [x, sum] = [0, 1].map(Expr::input);
        let share = Expr::eq(&sum, 0.0).select(0.0, x / sum);
        self.try_push(broadcast(share, &shape, &[&shape, &[n_groups, 1]]), &[weights, total, shares])?;
        let mut inner = self.inner_mut();
        // What a segment records is recomputed, so other operations must not read it.
        if let (false, Some(kept)) = (inner.in_segment, &mut inner.row_weights) {
            kept.shares.push((n_groups, shares));
        }
        Ok(Some(NormWeights { weights, shares }))
    }
}
