use std::ops::Range;

use brisk_kernels::{AugmentImages, BatchRows, DType, GatherCategories, GatherRows, ImageAugmentation, ORDER_LEN, StoreRows};
use brisk_program::{Device, Persistent, Slice};

use crate::error::Error;
use crate::graph::Graph;
use crate::graph::tensor::Tensor;
use crate::windows::Windows;

/// The rows of a batch, which are chosen on the device.
#[derive(Debug, Clone)]
pub struct DeviceBatch {
    /// `[n]` u32: rows of the table.
    pub(crate) rows: Slice,
    /// `[n]` u32: the number of each row that random numbers depend on. As `rows`, unless the table is a part of a larger one.
    pub(crate) ids: Slice,
    /// The ids of the rows of a table that is a part of a larger one.
    pub(crate) id_table: Option<Windows>,
    pub(crate) order: Slice,
    /// `[n]`: 1 for a row, 0 for padding after the last row.
    pub weights: Tensor,
    pub(crate) n: usize,
}

/// A table whose rows are images, and how they are standardised.
#[derive(Debug, Clone, Copy)]
pub struct ImageTable<'a> {
    /// `[n_table_rows, height * width * n_channels]`, f32 or u8, which is 0 to 255.
    pub table: &'a Windows,
    /// The mean of each column, f32.
    pub mean: &'a Persistent,
    /// One over the standard deviation of each column, f32.
    pub inv_std: &'a Persistent,
    /// Height, width and channels of an image.
    pub image: [usize; 3],
}

impl DeviceBatch {
    /// The same batch with other rows of the table, such as the partners that its rows are mixed with. Their weights are those of
    /// the rows that they replace.
    ///
    /// # Shapes
    /// `rows`: `[n]`.
    /// # Dtypes
    /// u32; a row beyond the table is gathered as zeros.
    /// # Errors
    /// [`Error::Shape`], [`Error::Dtype`], [`Error::ForeignTensor`].
    #[track_caller]
    pub fn with_rows(&self, rows: &Tensor) -> Self {
        const OP: &str = "with_rows";
        let graph = self.weights.graph();
        let checked = graph.check_own(OP, "rows", rows).and_then(|()| rows.check_len(OP, "rows", self.weights.shape(), self.n));
        let checked = checked.and_then(|()| match rows.dtype() {
            DType::U32 => Ok(()),
            found => Err(Error::Dtype { op: OP, arg: "rows", expected: "u32", found }),
        });
        let weights = match checked {
            Ok(()) if !rows.is_failed() => self.weights.clone(),
            Ok(()) => graph.failed_tensor(DType::F32, &[self.n]),
            Err(error) => graph.failed(error, DType::F32, &[self.n]),
        };
        let batch = Self { rows: rows.slice(), ids: rows.slice(), id_table: None, weights, ..self.clone() };
        match &self.id_table {
            Some(ids) => batch.of_part(ids),
            None => batch,
        }
    }

    /// The same batch, of a table that is a part of a larger one: `ids` has the number of each of its rows in the larger table.
    /// Random draws then depend on these numbers, so that a row is augmented in the same way as in the larger table.
    ///
    /// # Shapes
    /// `ids`: `[n_table_rows, 1]`.
    /// # Dtypes
    /// u32.
    /// # Errors
    /// [`Error::Shape`] for several columns; [`Error::Program`] for another dtype.
    #[track_caller]
    pub fn of_part(&self, ids: &Windows) -> Self {
        const OP: &str = "of_part";
        if self.weights.is_failed() {
            return self.clone();
        }
        let graph = self.weights.graph();
        let gathered = if ids.n_cols() == 1 {
            graph
                .push_windows(OP, ids, DType::U32, self.n, |first_row, window, y| graph.push_codes(self, 1, first_row, window, y))
        } else {
            let (expected, found) = ("[n_table_rows, 1], an id for each row".to_owned(), vec![ids.n_rows(), ids.n_cols()]);
            Err(Error::Shape { op: OP, arg: "ids", expected, found })
        };
        match gathered {
            Ok(gathered) => Self { ids: gathered, id_table: Some(ids.clone()), ..self.clone() },
            Err(error) => Self { weights: graph.failed(error, DType::F32, &[self.n]), ..self.clone() },
        }
    }
}

impl Graph {
    /// The rows of the current batch: `n` of them, from `order` ([`ORDER_LEN`] u32) at the batch index in `state`
    /// ([`STATE_LEN`](brisk_kernels::STATE_LEN) u32). A short last batch is padded by rows of weight 0: reduce losses with
    /// [`DeviceBatch::weights`], and give them to [`set_row_weights`](Self::set_row_weights) before layers that take statistics.
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers have other lengths or types.
    #[track_caller]
    pub fn batch(&self, order: &Persistent, state: &Persistent, n: usize) -> DeviceBatch {
        self.batch_part(order, state, 0..n)
    }

    /// [`batch`](Self::batch) for some of the rows: a micro-batch, whose gradients are [accumulated](Self::accumulate).
    ///
    /// # Errors
    /// As [`batch`](Self::batch).
    #[track_caller]
    pub fn batch_part(&self, order: &Persistent, state: &Persistent, part: Range<usize>) -> DeviceBatch {
        self.varies_by("batch", state);
        self.inner_mut().source.rows = part.clone();
        let (first, n) = (part.start, part.len());
        let [rows, weights] = [("rows", DType::U32), ("weights", DType::F32)].map(|(name, dtype)| self.transient(name, dtype, n));
        let order = self.buffer(order);
        let weights = match self.try_push(BatchRows { first, n }, &[order, self.buffer(state), rows, weights]) {
            Ok(()) => self.wrap(weights, &[n]),
            Err(error) => self.failed(error, DType::F32, &[n]),
        };
        DeviceBatch { rows, ids: rows, id_table: None, order, weights, n }
    }

    /// The batch's rows of a table, standardised by column: `(table[row] - mean) * inv_std`. One kernel per window.
    ///
    /// # Shapes
    /// `table`: `[n_table_rows, n_cols]`; `mean`, `inv_std`: `[n_cols]`; the result `[n, n_cols]`. Without columns no kernel is
    /// recorded.
    /// # Dtypes
    /// `table` f32 or u8, which is 0 to 255; the rest and the result f32.
    /// # Errors
    /// [`Error::Shape`] unless there is a mean for each column; [`Error::Program`] for a table of another dtype;
    /// [`Error::ForeignTensor`] for a batch of another graph.
    #[track_caller]
    pub fn gather(&self, batch: &DeviceBatch, table: &Windows, mean: &Persistent, inv_std: &Persistent) -> Tensor {
        let (n, n_cols, dtype) = (batch.n, table.n_cols(), table.dtype());
        if let Err(error) = check_statistics("gather", n_cols, mean, inv_std) {
            return self.failed(error, DType::F32, &[n, n_cols]);
        }
        self.gather_windows("gather", batch, table, DType::F32, n_cols, |first_row, window, y| {
            let [mean, inv_std] = [mean, inv_std].map(|values| self.buffer(values));
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
    pub fn gather_categories(&self, batch: &DeviceBatch, table: &Windows) -> Tensor {
        let n_cols = table.n_cols();
        self.gather_windows("gather_categories", batch, table, DType::U32, n_cols, |first_row, window, y| {
            self.push_codes(batch, n_cols, first_row, window, y)
        })
    }

    fn push_codes(&self, batch: &DeviceBatch, n_cols: usize, first_row: usize, window: Slice, y: Slice) -> Result<(), Error> {
        let kernel = GatherCategories { first_row, n_table_rows: window.len() / n_cols.max(1), n_cols, n: batch.n };
        self.try_push(kernel, &[window, batch.rows, y])
    }

    /// The batch's images of a table, augmented and standardised: `(table[row] - mean) * inv_std` of the pixels of a random crop,
    /// and so on, as [`ImageAugmentation`] describes. The random draws depend only on the row (its id in a
    /// [part](DeviceBatch::of_part) of a table) and the epoch of the batch's order. Two kernels per window.
    ///
    /// # Shapes
    /// The result: `[n, crop height, crop width, n_channels]`.
    /// # Errors
    /// [`Error::Shape`] if rows are not such images, or the statistics not of all columns; [`Error::Program`] for an augmentation
    /// that does not fit the images, or a table of another dtype; [`Error::ForeignTensor`] for a batch of another graph.
    /// # Reference
    /// [`AugmentImages`], which names the transforms of torchvision that it equals.
    #[track_caller]
    pub fn augment_images(
        &self,
        batch: &DeviceBatch,
        images: &ImageTable<'_>,
        crop: [usize; 2],
        augmentation: &ImageAugmentation,
    ) -> Tensor {
        const OP: &str = "augment_images";
        let &ImageTable { table, mean, inv_std, image } = images;
        let (n, n_cols, dtype, augmentation) = (batch.n, table.n_cols(), table.dtype(), *augmentation);
        let shape = [n, crop[0], crop[1], image[2]];
        let checked = check_statistics(OP, n_cols, mean, inv_std).and_then(|()| {
            if image.iter().product::<usize>() == n_cols {
                return Ok(());
            }
            let expected = format!("{n_cols} values, as a row of the table has");
            Err(Error::Shape { op: OP, arg: "image", expected, found: image.to_vec() })
        });
        if let Err(error) = checked {
            return self.failed(error, DType::F32, &shape);
        }
        let [mean, inv_std] = [mean, inv_std].map(|values| self.buffer(values));
        let n_columns = shape[1..].iter().product();
        let y = self.gather_windows(OP, batch, table, DType::F32, n_columns, |first_row, window, y| {
            let n_table_rows = window.len() / n_cols.max(1);
            let kernel = AugmentImages { dtype, first_row, n_table_rows, image, crop, n, augmentation };
            self.try_push(kernel, &[window, batch.rows, batch.ids, batch.order, mean, inv_std, y])
        });
        y.reshape(&shape)
    }

    /// Records a kernel for each window of `table`, made from the first row of the window, its buffer, and the buffer of the
    /// result of `n_cols` columns; none for a result without columns.
    #[track_caller]
    fn gather_windows(
        &self,
        op: &'static str,
        batch: &DeviceBatch,
        table: &Windows,
        dtype: DType,
        n_cols: usize,
        push: impl FnMut(usize, Slice, Slice) -> Result<(), Error>,
    ) -> Tensor {
        let shape = [batch.n, n_cols];
        if let Err(error) = self.check_own(op, "batch", &batch.weights) {
            return self.failed(error, dtype, &shape);
        }
        if batch.weights.is_failed() {
            return self.failed_tensor(dtype, &shape);
        }
        if n_cols == 0 {
            return self.empty(op, dtype, &shape);
        }
        match self.push_windows(op, table, dtype, shape[0] * shape[1], push) {
            Ok(y) => self.wrap(y, &shape),
            Err(error) => self.failed(error, dtype, &shape),
        }
    }

    /// The same with a result of `len` elements that is not wrapped as a tensor.
    fn push_windows(
        &self,
        name: &'static str,
        table: &Windows,
        dtype: DType,
        len: usize,
        mut push: impl FnMut(usize, Slice, Slice) -> Result<(), Error>,
    ) -> Result<Slice, Error> {
        let y = self.transient(name, dtype, len);
        table.by_first_row().try_for_each(|(first_row, window)| push(first_row, self.buffer(window), y))?;
        Ok(y)
    }

    /// Appends `x` to `all`, at the batch index in `state` times its length. If a batch does not fit at all, because `all` is too
    /// short or the batch index was not reset for a new epoch, the last element of `all` becomes NaN; [`stored`](Self::stored)
    /// then returns an error.
    ///
    /// # Errors
    /// [`Error::ForeignTensor`]; [`Error::Dtype`] if `x` is not f32, such as the result of a product within autocast;
    /// [`Error::Program`] if the buffers have other dtypes.
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

    /// The numbers that [`store`](Self::store) has written to `all`, one per batch, such as the losses of an epoch: those of the
    /// batches since the batch index in `state` was last reset to 0.
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

    /// A buffer for [`batch`](Self::batch)'s `order`, which must be written before the first step.
    pub fn order_buffer() -> Persistent {
        Persistent::required("order", DType::U32, ORDER_LEN)
    }
}

/// Checks that there is a mean and a standard deviation for each of `n_cols` columns.
fn check_statistics(op: &'static str, n_cols: usize, mean: &Persistent, inv_std: &Persistent) -> Result<(), Error> {
    match [("mean", mean), ("inv_std", inv_std)].into_iter().find(|(_, values)| values.len() != n_cols) {
        None => Ok(()),
        Some((arg, found)) => {
            let expected = format!("[{n_cols}], a value for each column");
            Err(Error::Shape { op, arg, expected, found: vec![found.len()] })
        }
    }
}
