use std::ops::Range;

use brisk_kernels::{Advance, BatchRows, DType, GatherCategories, GatherRows, ORDER_LEN, STATE_LEN, StoreRows};
use brisk_program::Persistent;

use crate::{Error, Graph, Tensor, Windows};

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
        self.batch_part(order, state, 0..n)
    }

    /// The same for a part of the batch: a micro-batch, whose gradients are [accumulated](Self::accumulate).
    ///
    /// # Errors
    /// As [`batch`](Self::batch).
    pub fn batch_part(&self, order: &Persistent, state: &Persistent, part: Range<usize>) -> Result<Batch, Error> {
        let (first, n) = (part.start, part.len());
        let weights = self.transient("weights", DType::F32, n);
        let rows = self.with_program(|program| {
            let (order, state) = (program.persistent(order), program.persistent(state));
            let rows = program.transient("rows", DType::U32, n);
            program.push(BatchRows { first, n }, &[order, state, rows, weights]).map(|()| rows)
        })?;
        Ok(Batch { rows, weights: self.wrap(weights, &[n])?, n })
    }

    /// The batch's rows of a table, standardised by column: `(table[row] - mean) * inv_std`. A kernel a window.
    ///
    /// # Shapes
    /// `table`: `[n_table_rows, n_cols]`; `mean`, `inv_std`: `[n_cols]`; the result `[n, n_cols]`.
    /// # Dtypes
    /// `table` f32 or u8, which is 0 to 255; the rest and the result f32.
    /// # Errors
    /// [`Error::Shape`] for another number of means than columns; [`Error::Program`] for a table of another type.
    pub fn gather(&self, batch: &Batch, table: &Windows, mean: &Persistent, inv_std: &Persistent) -> Result<Tensor, Error> {
        let n_cols = table.n_cols();
        for (arg, found) in [("mean", mean.len()), ("inv_std", inv_std.len())] {
            if found != n_cols {
                let expected = format!("[{n_cols}], one a column");
                return Err(Error::Shape { op: "gather", arg, expected, found: vec![found] });
            }
        }
        let y = self.transient("gather", DType::F32, batch.n * n_cols);
        self.with_program(|program| {
            let (mean, inv_std) = (program.persistent(mean), program.persistent(inv_std));
            for (first_row, window) in table.by_first_row() {
                let kernel =
                    GatherRows { dtype: table.dtype(), first_row, n_table_rows: window.len() / n_cols, n_cols, n: batch.n };
                let window = program.persistent(window);
                program.push(kernel, &[window, batch.rows, mean, inv_std, y])?;
            }
            Ok::<_, Error>(())
        })?;
        self.wrap(y, &[batch.n, n_cols])
    }

    /// The batch's rows of a table of codes: what [`Tensor::embedding`] takes. A kernel a window.
    ///
    /// # Shapes
    /// `table`: `[n_table_rows, n_cols]`; the result `[n, n_cols]`.
    /// # Dtypes
    /// u32.
    /// # Errors
    /// [`Error::Program`] for a table of another type.
    pub fn gather_categories(&self, batch: &Batch, table: &Windows) -> Result<Tensor, Error> {
        let (n, n_cols) = (batch.n, table.n_cols());
        let y = self.with_program(|program| {
            let y = program.transient("categories", DType::U32, n * n_cols);
            for (first_row, window) in table.by_first_row() {
                let kernel = GatherCategories { first_row, n_table_rows: window.len() / n_cols.max(1), n_cols, n };
                let window = program.persistent(window);
                program.push(kernel, &[window, batch.rows, y])?;
            }
            Ok::<_, Error>(y)
        })?;
        self.wrap(y, &[n, n_cols])
    }

    /// Appends `x` to `all`, at the batch index in `state` times its length.
    ///
    /// # Errors
    /// [`Error::ForeignTensor`]; [`Error::Dtype`] if `x` is not f32, as what autocast's products make; [`Error::Program`] if the buffers have other types.
    pub fn store(&self, x: &Tensor, state: &Persistent, all: &Persistent) -> Result<(), Error> {
        self.check_own("store", "x", x)?;
        if x.dtype() != DType::F32 {
            let expected = "f32; store `x.cast(DType::F32)?`";
            return Err(Error::Dtype { op: "store", arg: "x", expected, found: x.dtype() });
        }
        let kernel = StoreRows { n: x.n_elements(), n_cols: 1, n_total: all.len() };
        Ok(self.with_program(|program| {
            let (state, all) = (program.persistent(state), program.persistent(all));
            program.push(kernel, &[x.slice(), state, all])
        })?)
    }

    /// Ends a step: the batch index and the step count go up by one; a step that was skipped is counted as such.
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
