use std::ops::Range;
use std::sync::Arc;

use crate::block_shuffle::BlockShuffle;
use crate::draws::WeightedDraws;
use crate::error::Error;
use crate::lane_shuffle::{LaneShuffle, Lanes, WINDOWS_BLOCKS, rows_of_a_block};
use crate::shuffle::Shuffle;

/// The order in which an epoch takes the rows. The same for every thread, worker, rank and device.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Order {
    /// The order of the source.
    #[default]
    Sequential,
    /// A different order in each epoch, a pure function of (seed of the training run, epoch): see [`Shuffle`].
    Shuffled { seed: u64 },
    /// Blocks of rows in a different order in each epoch, and rows shuffled within a window of several blocks: see
    /// [`BlockShuffle`]. For tables larger than memory, which are then read in large sequential pieces;
    /// [`RowSource::hint`](crate::RowSource::hint) tells the source which blocks the next window needs, and which are no longer
    /// needed. `block_rows` and `window_blocks`, the number of blocks that are shuffled together, are at least 1. Two windows are
    /// in memory at a time, the one in use and the one read ahead.
    Blocks { seed: u64, block_rows: u32, window_blocks: u32 },
    /// As many rows of each of several regions of the source in every batch, shuffled by blocks within the regions: see
    /// [`LaneShuffle`]. For sources that several ranks read, each only the regions that its [part](crate::Shard::parts) of the
    /// batches comes from; hints are given as for [`Blocks`](Self::Blocks), for each region.
    Lanes(Lanes),
    /// Rows drawn by weight, with replacement: see [`WeightedDraws`]. The number of draws is the number of rows in an epoch.
    Weighted { seed: u64, draws: Arc<WeightedDraws> },
}

impl Order {
    /// The order to shuffle rows in that are read by blocks of about 1 MiB, the same for any number of ranks: by
    /// [lanes](Lanes::of_batches), or, if batches of `batch_rows` cannot be divided into lanes, in windows of sixteen blocks.
    pub fn by_blocks(batch_rows: usize, row_bytes: usize, seed: u64) -> Self {
        match Lanes::of_batches(batch_rows, row_bytes, Some(seed)) {
            Some(lanes) => Self::Lanes(lanes),
            None => Self::Blocks { seed, block_rows: rows_of_a_block(row_bytes), window_blocks: WINDOWS_BLOCKS as u32 },
        }
    }

    /// The order of `epoch`, over `n_rows` rows.
    pub fn of_epoch(&self, n_rows: u32, epoch: u32) -> EpochOrder {
        match self {
            Self::Sequential => EpochOrder::Sequential { n_rows },
            Self::Shuffled { seed } => EpochOrder::Shuffled(Shuffle::new(n_rows, *seed, epoch)),
            Self::Blocks { seed, block_rows, window_blocks } => {
                EpochOrder::Blocks(BlockShuffle::new(n_rows, *seed, epoch, *block_rows, *window_blocks))
            }
            Self::Lanes(lanes) => EpochOrder::Lanes(LaneShuffle::new(n_rows, *lanes, epoch)),
            Self::Weighted { seed, draws } => EpochOrder::Weighted { seed: *seed, epoch, draws: Arc::clone(draws) },
        }
    }

    /// The bijection of `epoch`, for a device that gathers rows itself and needs the keys. `None` for any order other than
    /// [`Shuffled`](Self::Shuffled).
    pub fn shuffle(&self, n_rows: u32, epoch: u32) -> Option<Shuffle> {
        match self.of_epoch(n_rows, epoch) {
            EpochOrder::Shuffled(shuffle) => Some(shuffle),
            _ => None,
        }
    }

    pub(crate) fn seed(&self) -> u64 {
        match self {
            Self::Sequential => 0,
            Self::Lanes(lanes) => lanes.seed.unwrap_or(0),
            Self::Shuffled { seed } | Self::Blocks { seed, .. } | Self::Weighted { seed, .. } => *seed,
        }
    }

    pub(crate) fn check(&self, n_rows: usize) -> Result<(), Error> {
        match self {
            Self::Blocks { block_rows, window_blocks, .. } if *block_rows == 0 || *window_blocks == 0 => {
                Err(Error::Blocks { block_rows: *block_rows, window_blocks: *window_blocks })
            }
            Self::Lanes(lanes) => lanes.check(),
            Self::Weighted { draws, .. } if draws.n_rows() as usize != n_rows => {
                Err(Error::DrawsOfOtherRows { n_weights: draws.n_rows() as usize, n_rows })
            }
            _ => Ok(()),
        }
    }
}

/// The order of one epoch: which row is at which position. Created by [`Order::of_epoch`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum EpochOrder {
    /// Position `i` is row `i`.
    Sequential { n_rows: u32 },
    /// A bijection of all rows.
    Shuffled(Shuffle),
    /// A bijection that keeps each row in its window.
    Blocks(BlockShuffle),
    /// A bijection that keeps each row in its lane, and in its window there.
    Lanes(LaneShuffle),
    /// Not a bijection: a row may occur several times, or never.
    Weighted { seed: u64, epoch: u32, draws: Arc<WeightedDraws> },
}

/// The window of an order without windows of its own: how much a source of files may read ahead at a time.
const SEQUENTIAL_WINDOW: u32 = 16 << 10;

impl EpochOrder {
    /// The number of positions: the number of rows, unless rows are drawn.
    pub fn n_positions(&self) -> u32 {
        match self {
            Self::Sequential { n_rows } => *n_rows,
            Self::Shuffled(shuffle) => shuffle.n_rows(),
            Self::Blocks(shuffle) => shuffle.n_rows(),
            Self::Lanes(shuffle) => shuffle.n_rows(),
            Self::Weighted { draws, .. } => draws.n_draws(),
        }
    }

    /// The row at `position`.
    ///
    /// # Panics
    /// If the position is out of range, as when indexing a slice.
    pub fn row(&self, position: u32) -> u32 {
        let mut row = [position];
        self.permute(&mut row);
        row[0]
    }

    /// Replaces each position by its row.
    ///
    /// # Panics
    /// If a position is out of range.
    pub fn permute(&self, positions: &mut [u32]) {
        match self {
            Self::Sequential { n_rows } => {
                let greatest = positions.iter().copied().max().unwrap_or(0);
                assert!(
                    greatest < *n_rows || positions.is_empty(),
                    "index {greatest} is out of range for an order of {n_rows} rows"
                );
            }
            Self::Shuffled(shuffle) => shuffle.permute(positions),
            Self::Blocks(shuffle) => shuffle.permute(positions),
            Self::Lanes(shuffle) => shuffle.permute(positions),
            Self::Weighted { seed, epoch, draws } => draws.draw(*seed, *epoch, positions),
        }
    }

    /// Whether positions are rows.
    pub(crate) fn is_sequential(&self) -> bool {
        matches!(self, Self::Sequential { .. })
    }

    /// The windows that contain some positions; `None` for an order that takes rows from the whole table at random.
    pub(crate) fn windows(&self, positions: Range<u32>) -> Option<Range<u32>> {
        let last = positions.end.checked_sub(1).filter(|&last| last >= positions.start)?;
        match self {
            Self::Sequential { .. } => Some(positions.start / SEQUENTIAL_WINDOW..last / SEQUENTIAL_WINDOW + 1),
            Self::Blocks(shuffle) => Some(shuffle.window(positions.start)..shuffle.window(last) + 1),
            Self::Lanes(shuffle) => Some(shuffle.windows(positions)),
            Self::Shuffled(_) | Self::Weighted { .. } => None,
        }
    }

    /// The lanes that some slots of each batch of `batch_rows` rows come from: all of them for batches of another size than that
    /// of the lanes. An order without lanes has one.
    pub(crate) fn lanes_of(&self, batch_rows: usize, slots: Range<usize>) -> Range<u32> {
        match self {
            Self::Lanes(shuffle) => shuffle.lanes_of(batch_rows, slots),
            _ => 0..1,
        }
    }

    /// Calls `f` with each range of rows that some lanes need in a window; never for a window beyond the last.
    pub(crate) fn for_each_range(&self, window: u32, lanes: Range<u32>, mut f: impl FnMut(Range<usize>)) {
        match self {
            Self::Sequential { n_rows } => {
                let first = u64::from(window) * u64::from(SEQUENTIAL_WINDOW);
                let end = (first + u64::from(SEQUENTIAL_WINDOW)).min(u64::from(*n_rows));
                (first < end).then_some(first as usize..end as usize).into_iter().for_each(f);
            }
            Self::Blocks(shuffle) => shuffle.blocks(window).for_each(f),
            Self::Lanes(shuffle) => lanes.for_each(|lane| shuffle.for_each_block(lane, window, &mut f)),
            Self::Shuffled(_) | Self::Weighted { .. } => {}
        }
    }
}
