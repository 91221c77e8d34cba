use std::ops::Range;

use brisk_kernels::{Advance, BatchRows, DType, GatherCategories, GatherRows, ORDER_LEN, STATE_LEN, StoreRows};
use brisk_program::{Device, Persistent, Slice};

use crate::place::Place;
use crate::scope;
use crate::{Error, Graph, Tensor, Windows};

/// The rows of a batch, which are chosen on the device.
#[derive(Debug, Clone)]
pub struct Batch {
    /// `[n]` u32: rows of the table.
    rows: Slice,
    /// `[n]`: 1 for a row, 0 for padding after the last.
    pub weights: Tensor,
    n: usize,
}

/// A use of the batch index of a run.
#[derive(Debug)]
pub(crate) struct Cursor {
    pub(crate) op: &'static str,
    pub(crate) state: Slice,
    pub(crate) place: Place,
    /// Whether the index is meant to stay.
    pub(crate) is_held: bool,
}

impl Graph {
    /// The rows of the current batch: `n` of them, from `order` ([`ORDER_LEN`] u32) at the batch index in `state` ([`STATE_LEN`] u32).
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers have other lengths or types.
    #[track_caller]
    pub fn batch(&self, order: &Persistent, state: &Persistent, n: usize) -> Batch {
        self.batch_part(order, state, 0..n)
    }

    /// [`batch`](Self::batch) for some of the rows: a micro-batch, whose gradients are [accumulated](Self::accumulate).
    ///
    /// # Errors
    /// As [`batch`](Self::batch).
    #[track_caller]
    pub fn batch_part(&self, order: &Persistent, state: &Persistent, part: Range<usize>) -> Batch {
        self.note_cursor(state);
        let (first, n) = (part.start, part.len());
        let [rows, weights] = [("rows", DType::U32), ("weights", DType::F32)].map(|(name, dtype)| self.transient(name, dtype, n));
        let weights = match self.try_push(BatchRows { first, n }, &[self.buffer(order), self.buffer(state), rows, weights]) {
            Ok(()) => self.wrap(weights, &[n]),
            Err(error) => self.failed(error, DType::F32, &[n]),
        };
        Batch { rows, weights, n }
    }

    /// The batch's rows of a table, standardised by column: `(table[row] - mean) * inv_std`. One kernel per window.
    ///
    /// # Shapes
    /// `table`: `[n_table_rows, n_cols]`; `mean`, `inv_std`: `[n_cols]`; the result `[n, n_cols]`.
    /// # Dtypes
    /// `table` f32 or u8, which is 0 to 255; the rest and the result f32.
    /// # Errors
    /// [`Error::Shape`] unless there is a mean for each column; [`Error::Program`] for a table of another dtype; [`Error::ForeignTensor`] for a batch of another
    /// graph.
    #[track_caller]
    pub fn gather(&self, batch: &Batch, table: &Windows, mean: &Persistent, inv_std: &Persistent) -> Tensor {
        let n_cols = table.n_cols();
        let statistics = [("mean", mean), ("inv_std", inv_std)];
        if let Some((arg, found)) = statistics.into_iter().find(|(_, values)| values.len() != n_cols) {
            let expected = format!("[{n_cols}], a value for each column");
            let error = Error::Shape { op: "gather", arg, expected, found: vec![found.len()] };
            return self.failed(error, DType::F32, &[batch.n, n_cols]);
        }
        let (n, dtype) = (batch.n, table.dtype());
        let [mean, inv_std] = [mean, inv_std].map(|values| self.buffer(values));
        self.gather_windows("gather", batch, table, DType::F32, |first_row, window, y| {
            let kernel = GatherRows { dtype, first_row, n_table_rows: window.len() / n_cols.max(1), n_cols, n };
            self.try_push(kernel, &[window, batch.rows, mean, inv_std, y])
        })
    }

    /// The batch's rows of a table of codes, for [`Tensor::embedding`]. One kernel per window.
    ///
    /// # Shapes
    /// `table`: `[n_table_rows, n_cols]`; the result `[n, n_cols]`.
    /// # Dtypes
    /// u32.
    /// # Errors
    /// [`Error::Program`] for a table of another dtype; [`Error::ForeignTensor`] for a batch of another graph.
    #[track_caller]
    pub fn gather_categories(&self, batch: &Batch, table: &Windows) -> Tensor {
        let (n, n_cols) = (batch.n, table.n_cols());
        self.gather_windows("gather_categories", batch, table, DType::U32, |first_row, window, y| {
            let kernel = GatherCategories { first_row, n_table_rows: window.len() / n_cols.max(1), n_cols, n };
            self.try_push(kernel, &[window, batch.rows, y])
        })
    }

    /// Records a kernel for each window of `table`, which is given the first row of the window, its buffer and that of the result.
    #[track_caller]
    fn gather_windows(
        &self,
        op: &'static str,
        batch: &Batch,
        table: &Windows,
        dtype: DType,
        mut push: impl FnMut(usize, Slice, Slice) -> Result<(), Error>,
    ) -> Tensor {
        let shape = [batch.n, table.n_cols()];
        if let Err(error) = self.check_own(op, "batch", &batch.weights) {
            return self.failed(error, dtype, &shape);
        }
        if batch.weights.is_failed() {
            return self.failed_tensor(dtype, &shape);
        }
        let y = self.transient(op, dtype, shape[0] * shape[1]);
        let pushed = table.by_first_row().try_for_each(|(first_row, window)| push(first_row, self.buffer(window), y));
        match pushed {
            Ok(()) => self.wrap(y, &shape),
            Err(error) => self.failed(error, dtype, &shape),
        }
    }

    /// Appends `x` to `all`, at the batch index in `state` times its length. If nothing of a batch fits, because `all` is too short or the batch index was not
    /// reset for a new epoch, the last element of `all` becomes NaN; [`stored`](Self::stored) then returns an error.
    ///
    /// # Errors
    /// [`Error::ForeignTensor`]; [`Error::Dtype`] if `x` is not f32, as results of products within autocast are not; [`Error::Program`] if the buffers have
    /// other dtypes.
    #[track_caller]
    pub fn store(&self, x: &Tensor, state: &Persistent, all: &Persistent) {
        if let Err(error) = self.check_own("store", "x", x) {
            return self.fail(error);
        }
        if x.dtype() != DType::F32 {
            let expected = "f32; store `x.cast(DType::F32)`";
            return self.fail(Error::Dtype { op: "store", arg: "x", expected, found: x.dtype() });
        }
        if !x.is_failed() {
            let kernel = StoreRows { n: x.n_elements(), n_cols: 1, n_total: all.len() };
            self.push(kernel, &[x.slice(), self.buffer(state), self.buffer(all)]);
        }
    }

    /// The numbers that [`store`](Self::store) has written to `all`, one per batch, such as the losses of an epoch: those of the batches since the batch index in
    /// `state` was last reset to 0.
    ///
    /// # Errors
    /// [`Error::Overrun`] if there have been more batches than `all` has elements; [`Error::Program`].
    pub fn stored(device: &Device, state: &Persistent, all: &Persistent) -> Result<Vec<f32>, Error> {
        let n_batches = device.read::<u32>(state)?.first().map_or(0, |&batch| batch as usize);
        let mut values: Vec<f32> = device.read(all)?;
        if n_batches > values.len() {
            return Err(Error::Overrun { buffer: all.name().to_owned(), len: values.len(), n_batches });
        }
        values.truncate(n_batches);
        Ok(values)
    }

    /// Says that this graph leaves the batch index in `state` as it is, because another graph or the host advances it: two graphs that take turns on the same
    /// batch, say. Otherwise a graph that [gathers](Self::batch) batches and never advances the index is refused by [`compile`](Self::compile).
    pub fn hold(&self, state: &Persistent) {
        let state = self.buffer(state);
        let mut inner = self.inner_mut();
        inner.cursors.iter_mut().filter(|cursor| cursor.state == state).for_each(|cursor| cursor.is_held = true);
    }

    #[track_caller]
    fn note_cursor(&self, state: &Persistent) {
        let state = self.buffer(state);
        let mut inner = self.inner_mut();
        let place = Place::caller(scope::path(&inner.scopes), inner.outer);
        inner.cursors.push(Cursor { op: "batch", state, place, is_held: false });
    }

    /// Ends a step: the batch index and the step count increase by one; a skipped step is counted as such.
    ///
    /// # Errors
    /// [`Error::Program`] if `state` is not [`STATE_LEN`] u32.
    #[track_caller]
    pub fn advance(&self, state: &Persistent) {
        self.push(Advance, &[self.buffer(state)]);
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
