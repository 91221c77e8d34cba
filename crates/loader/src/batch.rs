use std::sync::Arc;

use crate::{Order, Shard, WeightedDraws};

/// One batch, lent until the next one is asked for. `T` is what its source's features are.
#[non_exhaustive]
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a, T = f32> {
    /// Which batch of the epoch this is, from 0. A resumed epoch counts on where it was, if the batch size is what it was.
    pub index: usize,
    /// `[ids.len(), n_cols]`, row-major.
    pub features: &'a [T],
    /// `[ids.len(), n_labels]`, row-major: a label per row, unless the source has several. 0 for padding.
    pub labels: &'a [f32],
    /// What a row weighs: the source's weight, or 1 if it has none; 0 for what is only there to fill the batch.
    pub weights: &'a [f32],
    /// `[ids.len(), n_categories]`, row-major; empty for a source without categories. 0 for padding.
    pub categories: &'a [u32],
    /// Where each row came from: its number in the source, `u32::MAX` for padding. Randomness that is keyed by it (an augmentation, say)
    /// is the same on any number of threads and ranks.
    pub ids: &'a [u32],
    /// How many rows are real. They come first; the rest has weight 0.
    pub rows: usize,
}

/// What becomes of the last batch, where the batch size does not divide the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LastBatch {
    /// Filled up with rows of zeros whose weight is 0, so that one recorded program serves. On several ranks the last ones may get
    /// batches of nothing but padding.
    #[default]
    Pad,
    /// Left out.
    Drop,
    /// As short as it is; on several ranks the last ones may get an empty batch.
    Short,
}

/// How rows become batches. Plain data: fill in the fields, or start from a size and say what differs.
///
/// ```
/// use brisk_loader::{Batching, LastBatch, Shard};
///
/// let batching = Batching::of(256).shuffled(42).shard(Shard::blocks(1, 4)).last(LastBatch::Drop);
/// # let _ = batching;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Rows in a batch of one rank.
    pub size: usize,
    /// In which order.
    pub order: Order,
    /// Which of them.
    pub shard: Shard,
    /// What becomes of the last batch.
    pub last: LastBatch,
}

impl Batching {
    /// Batches of `size` rows, in order, all of them, the last one padded.
    pub fn of(size: usize) -> Self {
        Self { size, order: Order::Sequential, shard: Shard::WHOLE, last: LastBatch::Pad }
    }

    /// In another order each epoch, from `seed`.
    pub fn shuffled(self, seed: u64) -> Self {
        Self { order: Order::Shuffled { seed }, ..self }
    }

    /// Blocks of `block_rows` rows in another order each epoch, shuffled within windows of `window_blocks`: for what does not fit in memory.
    pub fn shuffled_blocks(self, seed: u64, block_rows: u32, window_blocks: u32) -> Self {
        Self { order: Order::Blocks { seed, block_rows, window_blocks }, ..self }
    }

    /// Rows drawn by weight, with replacement.
    pub fn weighted(self, seed: u64, draws: Arc<WeightedDraws>) -> Self {
        Self { order: Order::Weighted { seed, draws }, ..self }
    }

    /// One rank's share.
    pub fn shard(self, shard: Shard) -> Self {
        Self { shard, ..self }
    }

    /// With another end.
    pub fn last(self, last: LastBatch) -> Self {
        Self { last, ..self }
    }
}
