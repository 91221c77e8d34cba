use brisk_kernels::{Advance, BatchRows, DType, GatherRows, ORDER_LEN, STATE_LEN, StoreRows};
use brisk_program::Persistent;

use crate::{Error, Graph, Tensor};

/// Which rows a batch takes, decided on the device.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[n]` u32: rows of the table.
    rows: brisk_program::Slice,
    /// `[n]`: 1 for a row, 0 for padding behind the last.
    pub weights: Tensor,
    n: usize,
}

impl Graph {
    /// The rows of the current batch: `n` of them, from `order` ([`ORDER_LEN`] u32) at the batch index in `state` ([`STATE_LEN`] u32).
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers have other lengths or types.
    pub fn batch(&self, order: &Persistent, state: &Persistent, n: usize) -> Result<Batch, Error> {
        let weights = self.transient("weights", n);
        let rows = self.with_program(|program| {
            let (order, state) = (program.persistent(order), program.persistent(state));
            let rows = program.transient("rows", DType::U32, n);
            program.push(BatchRows { n }, &[order, state, rows, weights]).map(|()| rows)
        })?;
        Ok(Batch { rows, weights: self.wrap(weights, &[n])?, n })
    }

    /// The batch's rows of a table, standardised by column: `(table[row] - mean) * inv_std`.
    ///
    /// # Shapes
    /// `table`: `[n_table_rows, n_cols]`; `mean`, `inv_std`: `[n_cols]`; the result `[n, n_cols]`.
    /// # Errors
    /// [`Error::Shape`] if the lengths do not fit each other.
    pub fn gather(&self, batch: &Batch, table: &Persistent, mean: &Persistent, inv_std: &Persistent) -> Result<Tensor, Error> {
        let n_cols = mean.len();
        if n_cols == 0 || !table.len().is_multiple_of(n_cols) {
            let expected = format!("a multiple of the {n_cols} columns");
            return Err(Error::Shape { op: "gather", arg: "table", expected, found: vec![table.len()] });
        }
        let kernel = GatherRows { n_table_rows: table.len() / n_cols, n_cols, n: batch.n };
        let y = self.transient("gather", batch.n * n_cols);
        self.with_program(|program| {
            let (table, mean, inv_std) = (program.persistent(table), program.persistent(mean), program.persistent(inv_std));
            program.push(kernel, &[table, batch.rows, mean, inv_std, y])
        })?;
        self.wrap(y, &[batch.n, n_cols])
    }

    /// Appends `x` to `all`, at the batch index in `state` times its length.
    ///
    /// # Errors
    /// [`Error::ForeignTensor`]; [`Error::Program`] if the buffers have other types.
    pub fn store(&self, x: &Tensor, state: &Persistent, all: &Persistent) -> Result<(), Error> {
        self.check_own("store", "x", x)?;
        let kernel = StoreRows { n: x.n_elements(), n_cols: 1, n_total: all.len() };
        Ok(self.with_program(|program| {
            let (state, all) = (program.persistent(state), program.persistent(all));
            program.push(kernel, &[x.slice(), state, all])
        })?)
    }

    /// Ends a step: the batch index and the step count go up by one.
    ///
    /// # Errors
    /// [`Error::Program`] if `state` is not [`STATE_LEN`] u32.
    pub fn advance(&self, state: &Persistent) -> Result<(), Error> {
        Ok(self.with_program(|program| {
            let state = program.persistent(state);
            program.push(Advance, &[state])
        })?)
    }

    /// A buffer for [`batch`](Self::batch)'s `order`.
    pub fn order_buffer() -> Persistent {
        Persistent::new("order", DType::U32, ORDER_LEN)
    }

    /// A buffer for the `state` of a run.
    pub fn state_buffer() -> Persistent {
        Persistent::new("state", DType::U32, STATE_LEN)
    }
}
