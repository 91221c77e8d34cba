//! Rows that stay where the table is, for `--stream`.

use anyhow::Result;
use brisk_examples::elsewhere::TableRows;
use brisk_loader::{Lanes, Order, RowSource, Subset, split, split_by_blocks};
use brisk_train::{DataParallel, FeedChoice, FeedConfig};

use crate::options::Options;

/// Bytes of a block of rows that is read at a time.
const BLOCK_BYTES: usize = 4 << 20;

/// The share of the rows that is held out for early stopping.
const VALID: f64 = 0.1;

/// The rows to train on, and those to validate with: whole blocks of rows that are streamed.
pub(crate) fn parts<'a>(rows: &'a TableRows, options: &Options) -> Result<[Subset<&'a TableRows>; 2]> {
    let (seed, fractions) = (options.run.seed, [1.0 - VALID, VALID]);
    Ok(match options.stream {
        None => split(rows, seed, fractions)?,
        Some(_) => {
            // Of a small table, so many blocks that both parts have some.
            let n_rows = rows.n_rows();
            split_by_blocks(rows, seed, block_rows(rows).min((n_rows / 100).max(1) as u32), fractions)?
        }
    })
}

/// How rows reach the device. Streamed ones are shuffled by blocks, of which each replica reads its own.
pub(crate) fn feed(options: &Options) -> FeedConfig {
    let choice = if options.stream.is_some() { FeedChoice::Streamed } else { FeedChoice::Auto };
    FeedConfig { choice, ..FeedConfig::default() }
}

/// The order of rows to test on in batches of `batch_rows`, of which each replica scores its part.
pub(crate) fn test_order(rows: &TableRows, batch_rows: usize, options: &Options, replicas: &DataParallel) -> Order {
    let is_divided = options.stream.is_some() && replicas.world_size() > 1;
    let lanes = is_divided.then(|| Lanes::of_batches(batch_rows, row_bytes(rows), None)).flatten();
    lanes.map_or(Order::Sequential, Order::Lanes)
}

fn row_bytes(rows: &TableRows) -> usize {
    (rows.n_cols() + rows.n_labels()) * size_of::<f32>()
}

fn block_rows(rows: &TableRows) -> u32 {
    u32::try_from((BLOCK_BYTES / row_bytes(rows).max(1)).max(1)).unwrap_or(u32::MAX)
}
