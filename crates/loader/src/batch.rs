use std::sync::Arc;

use crate::draws::WeightedDraws;
use crate::error::Error;
use crate::order::Order;
use crate::shard::{Deal, Shard};

/// One batch, borrowed until the next one is requested. `T` is the type of the source's features.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a, T = f32> {
    /// The index of the batch in its epoch, from 0. A resumed epoch continues the count, unless the batch size has changed.
    pub index: usize,
    /// `[ids.len(), n_cols]`, row-major.
    pub features: &'a [T],
    /// `[ids.len(), n_labels]`, row-major: one label per row, unless the source has several. 0 for padding.
    pub labels: &'a [f32],
    /// The weight of each row: the source's weight, or 1 if it has none; 0 for padding and for repeated rows that fill the batch.
    pub weights: &'a [f32],
    /// `[ids.len(), n_categories]`, row-major; empty for a source without categories. 0 for padding.
    pub categories: &'a [u32],
    /// The number of each row in the source, `u32::MAX` for padding. Randomness that is keyed by it (in an augmentation, for
    /// example) is the same on any number of threads and ranks.
    pub ids: &'a [u32],
    /// The number of real rows. They come first; the others have weight 0.
    pub rows: usize,
}

/// What to do with the last batch if the batch size does not divide the number of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastBatch {
    /// Filled up with rows of zeros whose weight is 0, so that all batches have the same shape. With several ranks the last ones
    /// may get batches of padding only.
    #[default]
    Pad,
    /// Dropped.
    Drop,
    /// Shorter than the others; with several ranks the last ones may get an empty batch.
    Short,
}

/// How rows become batches. Plain data: fill in the fields, or start with [`Batching::of`] and change what differs.
///
/// ```
/// use brisk_loader::{Batching, LastBatch, Shard};
///
/// let batching = Batching::of(256).shuffled(42).shard(Shard::blocks(1, 4)).last(LastBatch::Drop);
/// # let _ = batching;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batching {
    /// The number of rows in a batch of one rank; of all ranks together for [`Shard::parts`].
    pub size: usize,
    /// The order of the rows.
    pub order: Order,
    /// The part of the rows that this rank gets.
    pub shard: Shard,
    /// What to do with the last batch.
    pub last: LastBatch,
}

impl Batching {
    /// Batches of `size` rows, in order, of all rows, with the last batch padded.
    pub fn of(size: usize) -> Self {
        Self { size, order: Order::Sequential, shard: Shard::WHOLE, last: LastBatch::Pad }
    }

    /// Shuffles the rows differently in each epoch, from `seed`.
    pub fn shuffled(self, seed: u64) -> Self {
        Self { order: Order::Shuffled { seed }, ..self }
    }

    /// Shuffles blocks of `block_rows` rows in each epoch, and rows within windows of `window_blocks` blocks: for sources that do
    /// not fit in memory.
    pub fn shuffled_blocks(self, seed: u64, block_rows: u32, window_blocks: u32) -> Self {
        Self { order: Order::Blocks { seed, block_rows, window_blocks }, ..self }
    }

    /// Draws rows by weight, with replacement.
    pub fn weighted(self, seed: u64, draws: Arc<WeightedDraws>) -> Self {
        Self { order: Order::Weighted { seed, draws }, ..self }
    }

    /// Uses the rows of one rank.
    pub fn shard(self, shard: Shard) -> Self {
        Self { shard, ..self }
    }

    /// The number of rows for which a batch of this rank has room.
    pub(crate) fn n_slots(&self) -> usize {
        match self.shard.deal {
            Deal::Blocks | Deal::Interleaved(_) => self.size,
            Deal::Parts { n_batches } => n_batches * self.shard.part(self.size / n_batches.max(1)).len(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        self.shard.check()?;
        match self.shard.deal {
            Deal::Parts { n_batches } if n_batches == 0 || !self.size.is_multiple_of(n_batches) => {
                Err(Error::Parts { size: self.size, n_batches })
            }
            _ => Ok(()),
        }
    }

    /// Sets what to do with the last batch.
    pub fn last(self, last: LastBatch) -> Self {
        Self { last, ..self }
    }
}
