//! Three ways to get shuffled batches as candle tensors, measured in alternation.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use anyhow::Result;
use brisk_loader::{Ahead, Batching, LastBatch, Loader, Prefetch, RowBuffers, RowSelection, RowSource, Shuffle};
use candle_core::{Device, Tensor};

use crate::options::Options;

const N_ROUNDS: usize = 5;

/// Rows per second, the median of several rounds.
pub(crate) struct Rates {
    pub(crate) brisk: f64,
    /// `index_select` on a table that is one tensor: candle's fastest way.
    pub(crate) index_select: f64,
    /// `Tensor::stack` of rows, as `candle_datasets::Batcher` does with the items of an iterator.
    pub(crate) stacked: f64,
}

pub(crate) fn measure<S: RowSource<Feature = f32>>(source: &S, options: &Options, device: &Device) -> Result<Rates> {
    let (n_rows, n_cols, size) = (source.n_rows(), source.n_cols(), options.batch);
    let loader = Loader::new(source, Batching::of(size).shuffled(options.seed).last(LastBatch::Drop))?;
    // The whole table as tensors, which candle's ways start with.
    let (mut features, mut labels) = (vec![0.0; n_rows * n_cols], vec![0.0; n_rows]);
    source.gather(RowSelection::Range(0..n_rows), RowBuffers::new(&mut features, &mut labels)).map_err(anyhow::Error::new)?;
    let (x, y) = (Tensor::from_vec(features, (n_rows, n_cols), device)?, Tensor::from_vec(labels, n_rows, device)?);

    let (mut brisk, mut index_select, mut stacked) = (Vec::new(), Vec::new(), Vec::new());
    thread::scope(|scope| -> Result<()> {
        let mut ahead = loader.prefetch(scope, Ahead::default());
        for epoch in 0..N_ROUNDS as u32 {
            brisk.push(rate(|| loaded(&mut ahead, epoch, device))?);
            index_select.push(rate(|| selected(&x, &y, &order(n_rows, options.seed, epoch), size))?);
            // Stacking row by row is slow: a part of the table is enough to measure its rate.
            let mut part = order(n_rows, options.seed, epoch);
            part.truncate(16 * size);
            stacked.push(rate(|| by_row(&x, &y, &part, size))?);
        }
        Ok(())
    })?;
    Ok(Rates { brisk: median(brisk), index_select: median(index_select), stacked: median(stacked) })
}

fn loaded(ahead: &mut Prefetch, epoch: u32, device: &Device) -> Result<usize> {
    let mut batches = ahead.epoch(epoch);
    let mut n_rows = 0;
    while let Some(batch) = batches.next_batch()? {
        let n_cols = batch.features.len() / batch.rows;
        let x = Tensor::from_slice(batch.features, (batch.rows, n_cols), device)?;
        let y = Tensor::from_slice(batch.labels, batch.rows, device)?;
        n_rows += black_box((x, y)).0.dim(0)?;
    }
    Ok(n_rows)
}

fn selected(x: &Tensor, y: &Tensor, order: &[u32], size: usize) -> Result<usize> {
    let mut n_rows = 0;
    for rows in order.chunks_exact(size) {
        let rows = Tensor::from_slice(rows, size, x.device())?;
        let batch = black_box((x.index_select(&rows, 0)?, y.index_select(&rows, 0)?));
        n_rows += batch.0.dim(0)?;
    }
    Ok(n_rows)
}

fn by_row(x: &Tensor, y: &Tensor, order: &[u32], size: usize) -> Result<usize> {
    let mut n_rows = 0;
    for rows in order.chunks_exact(size) {
        let row = |of: &Tensor| rows.iter().map(|&row| of.get(row as usize)).collect::<candle_core::Result<Vec<_>>>();
        let batch = black_box((Tensor::stack(&row(x)?, 0)?, Tensor::stack(&row(y)?, 0)?));
        n_rows += batch.0.dim(0)?;
    }
    Ok(n_rows)
}

/// The order in which the loader takes the rows, as an array: candle has no shuffle.
fn order(n_rows: usize, seed: u64, epoch: u32) -> Vec<u32> {
    let mut order = vec![0; n_rows];
    // At most 2^32 - 1 rows, since a loader was created for them.
    Shuffle::new(n_rows as u32, seed, epoch).fill(0, &mut order);
    order
}

/// Rows per second of one epoch; `epoch` returns how many rows it had.
fn rate(epoch: impl FnOnce() -> Result<usize>) -> Result<f64> {
    let started = Instant::now();
    let n_rows = epoch()?;
    Ok(n_rows as f64 / started.elapsed().as_secs_f64())
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}
