use std::time::Instant;

use brisk_loader::{EpochOrder, Order, RowSource};
use brisk_nn::tensor::program::kernels::{ORDER_LEN, STATE_LEN, sequential_order, shuffled_order};
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent, Tensor, Windows};

use crate::Error;

/// A table resident on the device: from it the recorded step gathers its batches, with nothing sent by the host.
#[derive(Debug, Clone)]
pub struct ResidentRows {
    features: Persistent,
    labels: Persistent,
    order: Persistent,
    n_rows: usize,
    n_cols: usize,
}

/// How columns are brought to mean 0 and variance 1, on the device, when a batch is gathered.
#[derive(Debug, Clone)]
pub struct Standardisation {
    mean: Vec<f32>,
    inv_std: Vec<f32>,
    buffers: [Persistent; 4],
}

/// A batch as tensors of a graph.
#[derive(Debug, Clone)]
pub struct BatchTensors {
    /// `[n, n_cols]`, standardised.
    pub x: Tensor,
    /// `[n]`.
    pub labels: Tensor,
    /// `[n]`: 1 for a row, 0 for the padding of a short last batch.
    pub weights: Tensor,
}

/// Rows read from a source at a time.
const CHUNK_ROWS: usize = 64 * 1024;

impl ResidentRows {
    /// Copies all rows of `source` to `device`.
    ///
    /// # Errors
    /// [`Error::EmptySet`]; [`Error::NonFinite`] names a column that holds NaN or infinity; [`Error::Rows`] if the source fails;
    /// [`Error::Tensor`] if the device has no room.
    pub fn upload<S: RowSource<Feature = f32>>(device: &Device, name: &'static str, source: &S) -> Result<Self, Error> {
        let (n_rows, n_cols) = check_not_empty(name, source)?;
        let features = Persistent::new(format!("{name}.features"), DType::F32, n_rows * n_cols);
        let labels = Persistent::new(format!("{name}.labels"), DType::F32, n_rows);
        let rows = Self { features, labels, order: Graph::order_buffer(), n_rows, n_cols };
        for_each_chunk(name, source, |first, x, y| {
            // All of a chunk first: that is vector instructions, a search for the first is not.
            if !x.iter().fold(true, |is_finite, x| is_finite & x.is_finite()) {
                let at = x.iter().position(|x| !x.is_finite()).unwrap_or(0);
                return Err(Error::NonFinite { set: name, column: at % n_cols });
            }
            device.write_at(&rows.features, first * n_cols, x)?;
            device.write_at(&rows.labels, first, y)?;
            Ok(())
        })?;
        rows.set_order(device, Order::Sequential, 0, 1)?;
        Ok(rows)
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// How many columns there are.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// How many batches of `batch_rows` an epoch has; the last may be short.
    pub fn n_batches(&self, batch_rows: usize) -> usize {
        self.n_rows.div_ceil(batch_rows)
    }

    /// Bytes on the device.
    pub fn len_bytes(&self) -> usize {
        self.features.len_bytes() + self.labels.len_bytes()
    }

    /// Sets the order in which the coming epoch takes the rows: sixteen numbers, whatever the length of the table.
    ///
    /// # Errors
    /// [`Error::ResidentOrder`] for an order that the device has no kernel for; [`Error::Tensor`] if the device has failed.
    pub fn set_order(&self, device: &Device, order: Order, epoch: u32, batch_rows: usize) -> Result<(), Error> {
        let (n, stride) = (self.n_rows as u32, batch_rows as u32);
        let numbers: [u32; ORDER_LEN] = match order.of_epoch(n, epoch) {
            EpochOrder::Sequential { .. } => sequential_order(n, stride, 0),
            EpochOrder::Shuffled(shuffle) => shuffled_order(n, shuffle.bits(), shuffle.keys(), stride, 0),
            _ => return Err(Error::ResidentOrder { order: order.to_string() }),
        };
        Ok(device.write(&self.order, &numbers)?)
    }

    /// Records the gathering of the batch that `state` stands at.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the columns differ from those of `scale`.
    pub fn record(
        &self,
        graph: &Graph,
        scale: &Standardisation,
        state: &Persistent,
        batch_rows: usize,
    ) -> Result<BatchTensors, Error> {
        let [mean, inv_std, zero, one] = &scale.buffers;
        let batch = graph.batch(&self.order, state, batch_rows)?;
        let x = graph.gather(&batch, &Windows::whole(&self.features, self.n_cols)?, mean, inv_std)?;
        let labels = graph.gather(&batch, &Windows::whole(&self.labels, 1)?, zero, one)?.reshape(&[batch_rows])?;
        Ok(BatchTensors { x, labels, weights: batch.weights })
    }
}

impl Standardisation {
    /// Mean and standard deviation (of the population, as scikit-learn's `StandardScaler`) of each column, in one pass in f64.
    ///
    /// A column that never changes, or by less than `f32` has numbers for, is only centred.
    ///
    /// # Errors
    /// [`Error::EmptySet`]; [`Error::NonFinite`] names the first column that holds NaN or infinity; [`Error::Rows`] if the source
    /// fails.
    pub fn of<S: RowSource<Feature = f32>>(name: &'static str, source: &S) -> Result<Self, Error> {
        let (_, n_cols) = check_not_empty(name, source)?;
        let (mut count, mut mean, mut squares) = (0.0_f64, vec![0.0_f64; n_cols], vec![0.0_f64; n_cols]);
        for_each_chunk(name, source, |_, x, _| {
            // Welford's update, a chunk of rows at a time.
            for row in x.chunks_exact(n_cols) {
                count += 1.0;
                for ((x, mean), squares) in row.iter().zip(&mut mean).zip(&mut squares) {
                    let off = f64::from(*x) - *mean;
                    *mean += off / count;
                    *squares += off * (f64::from(*x) - *mean);
                }
            }
            Ok(())
        })?;
        if let Some(column) = squares.iter().position(|s| !s.is_finite()) {
            return Err(Error::NonFinite { set: name, column });
        }
        let inv_std =
            squares.iter().map(|s| (1.0 / (s / count).sqrt()) as f32).map(|inv| if inv.is_finite() { inv } else { 1.0 });
        Ok(Self::new(mean.iter().map(|&mean| mean as f32).collect(), inv_std.collect()))
    }

    /// From known values, such as those of a checkpoint.
    pub fn new(mean: Vec<f32>, inv_std: Vec<f32>) -> Self {
        let buffer = |name, len| Persistent::new(name, DType::F32, len);
        let buffers = [buffer("mean", mean.len()), buffer("inv_std", inv_std.len()), buffer("zero", 1), buffer("one", 1)];
        Self { mean, inv_std, buffers }
    }

    /// The columns' means.
    pub fn mean(&self) -> &[f32] {
        &self.mean
    }

    /// One over the columns' standard deviations.
    pub fn inv_std(&self) -> &[f32] {
        &self.inv_std
    }

    /// Writes the values to `device`.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device has no room.
    pub fn write(&self, device: &Device) -> Result<(), Error> {
        let values: [&[f32]; 4] = [&self.mean, &self.inv_std, &[0.0], &[1.0]];
        for (buffer, values) in self.buffers.iter().zip(values) {
            device.write(buffer, values)?;
        }
        Ok(())
    }
}

/// Rows and columns of `source`, of which there must be some.
fn check_not_empty<S: RowSource<Feature = f32>>(set: &'static str, source: &S) -> Result<(usize, usize), Error> {
    match (source.n_rows(), source.n_cols()) {
        (n_rows, n_cols) if n_rows == 0 || n_cols == 0 || n_rows >= u32::MAX as usize => {
            Err(Error::EmptySet { set, n_rows, n_cols })
        }
        sizes => Ok(sizes),
    }
}

/// All labels of `source`, which must be 0 or 1.
///
/// # Errors
/// [`Error::BinaryLabel`] names the first row with another label, and `set`; [`Error::Rows`] if the source fails.
pub fn binary_labels<S: RowSource<Feature = f32>>(set: &'static str, source: &S) -> Result<Vec<f32>, Error> {
    let mut labels = Vec::with_capacity(source.n_rows());
    for_each_chunk(set, source, |_, _, y| {
        labels.extend_from_slice(y);
        Ok(())
    })?;
    match labels.iter().position(|&label| label != 0.0 && label != 1.0) {
        None => Ok(labels),
        Some(row) => Err(Error::BinaryLabel { set, row, found: labels[row] }),
    }
}

fn for_each_chunk<S: RowSource<Feature = f32>>(
    set: &'static str,
    source: &S,
    mut f: impl FnMut(usize, &[f32], &[f32]) -> Result<(), Error>,
) -> Result<(), Error> {
    let (n_rows, n_cols) = (source.n_rows(), source.n_cols());
    let mut x = vec![0.0; CHUNK_ROWS.min(n_rows) * n_cols];
    let mut y = vec![0.0; CHUNK_ROWS.min(n_rows)];
    for first in (0..n_rows).step_by(CHUNK_ROWS) {
        let rows = first..(first + CHUNK_ROWS).min(n_rows);
        let (x, y) = (&mut x[..rows.len() * n_cols], &mut y[..rows.len()]);
        source.gather_range(rows, x, y).map_err(|source| Error::Rows { set, reason: source.to_string() })?;
        f(first, x, y)?;
    }
    Ok(())
}

/// The feed of a run alone, without a model, to see what it can deliver.
#[derive(Debug)]
pub struct FeedProbe {
    graph: Graph,
    executable: Executable,
    state: Persistent,
    rows: ResidentRows,
    batch_rows: usize,
}

impl FeedProbe {
    /// Records and compiles the gathering of batches of `rows`.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device has no room.
    pub fn new(device: &Device, rows: &ResidentRows, scale: &Standardisation, batch_rows: usize) -> Result<Self, Error> {
        let graph = Graph::inference("feed");
        let state = Graph::state_buffer();
        rows.record(&graph, scale, &state, batch_rows)?;
        graph.advance(&state)?;
        let executable = graph.compile(device)?;
        Ok(Self { graph, executable, state, rows: rows.clone(), batch_rows })
    }

    /// Shuffled rows a second: the median of five epochs.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device fails.
    pub fn rows_per_s(&self) -> Result<f64, Error> {
        let device = self.executable.device();
        let mut rates = Vec::with_capacity(5);
        for epoch in 0..5 {
            self.rows.set_order(device, Order::Shuffled { seed: 0 }, epoch, self.batch_rows)?;
            device.write(&self.state, &[0_u32; STATE_LEN])?;
            device.wait()?;
            let started = Instant::now();
            self.executable.run(self.rows.n_batches(self.batch_rows))?;
            device.wait()?;
            rates.push(self.rows.n_rows as f64 / started.elapsed().as_secs_f64());
        }
        rates.sort_by(f64::total_cmp);
        Ok(rates[rates.len() / 2])
    }

    /// What is replayed, to plan memory with.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}
