use std::ops::Range;
use std::sync::Arc;

use crate::{BlockShuffle, Error, Shuffle, WeightedDraws};

/// In which order an epoch takes the rows. The same for every thread, worker, rank and device.
#[non_exhaustive]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they lie.
    #[default]
    Sequential,
    /// Another order each epoch, a pure function of (seed, epoch): see [`Shuffle`].
    Shuffled {
        /// The run's seed.
        seed: u64,
    },
    /// Blocks of rows in another order each epoch, and rows shuffled within a window of some blocks: see [`BlockShuffle`]. For tables larger
    /// than memory, which are then read in long runs; the source is told by [`RowSource::prefetch_range`](crate::RowSource::prefetch_range)
    /// which blocks the next window needs, and by [`RowSource::release_range`](crate::RowSource::release_range) which are done with.
    Blocks {
        /// The run's seed.
        seed: u64,
        /// Rows in a block; at least 1.
        block_rows: u32,
        /// Blocks that are shuffled together; at least 1. Two windows are in memory at a time, the one in use and the one read ahead.
        window_blocks: u32,
    },
    /// Rows drawn by weight, with replacement: see [`WeightedDraws`]. An epoch has as many rows as there are draws.
    Weighted {
        /// The run's seed.
        seed: u64,
        /// What each row weighs, and how many are drawn.
        draws: Arc<WeightedDraws>,
    },
}

impl Order {
    /// The order of `epoch`, over `n_rows` rows.
    pub fn of_epoch(&self, n_rows: u32, epoch: u32) -> EpochOrder {
        match self {
            Self::Sequential => EpochOrder::Sequential { n_rows },
            Self::Shuffled { seed } => EpochOrder::Shuffled(Shuffle::new(n_rows, *seed, epoch)),
            Self::Blocks { seed, block_rows, window_blocks } => {
                EpochOrder::Blocks(BlockShuffle::new(n_rows, *seed, epoch, *block_rows, *window_blocks))
            }
            Self::Weighted { seed, draws } => EpochOrder::Weighted { seed: *seed, epoch, draws: Arc::clone(draws) },
        }
    }

    /// The bijection of `epoch`, whose keys a device that gathers by itself is given. `None` for any other order than
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
            Self::Shuffled { seed } | Self::Blocks { seed, .. } | Self::Weighted { seed, .. } => *seed,
        }
    }

    pub(crate) fn check(&self, n_rows: usize) -> Result<(), Error> {
        match self {
            Self::Blocks { block_rows, window_blocks, .. } if *block_rows == 0 || *window_blocks == 0 => {
                Err(Error::Blocks { block_rows: *block_rows, window_blocks: *window_blocks })
            }
            Self::Weighted { draws, .. } if draws.n_rows() as usize != n_rows => {
                Err(Error::DrawsOfOtherRows { n_weights: draws.n_rows() as usize, n_rows })
            }
            _ => Ok(()),
        }
    }
}

/// The order of one epoch: which row comes at which position. From [`Order::of_epoch`].
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EpochOrder {
    /// Position `i` is row `i`.
    Sequential {
        /// How many rows there are.
        n_rows: u32,
    },
    /// A bijection of all rows.
    Shuffled(Shuffle),
    /// A bijection that keeps a row in its window.
    Blocks(BlockShuffle),
    /// No bijection: a row may come several times, or never.
    Weighted {
        /// The run's seed.
        seed: u64,
        /// The epoch.
        epoch: u32,
        /// What each row weighs.
        draws: Arc<WeightedDraws>,
    },
}

/// A window of an order that has none of its own: what a source of files may read ahead at a time.
const SEQUENTIAL_WINDOW: u32 = 16 << 10;

impl EpochOrder {
    /// How many positions there are: as many as rows, unless rows are drawn.
    pub fn n_positions(&self) -> u32 {
        match self {
            Self::Sequential { n_rows } => *n_rows,
            Self::Shuffled(shuffle) => shuffle.n_rows(),
            Self::Blocks(shuffle) => shuffle.n_rows(),
            Self::Weighted { draws, .. } => draws.n_draws(),
        }
    }

    /// The row at `position`.
    ///
    /// # Panics
    /// If there is no such position, as indexing a slice would.
    pub fn row(&self, position: u32) -> u32 {
        let mut row = [position];
        self.permute(&mut row);
        row[0]
    }

    /// Replaces each position by its row.
    ///
    /// # Panics
    /// If one of them is no position.
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
            Self::Weighted { seed, epoch, draws } => draws.draw(*seed, *epoch, positions),
        }
    }

    /// Whether positions are rows.
    pub(crate) fn is_sequential(&self) -> bool {
        matches!(self, Self::Sequential { .. })
    }

    /// The window that a position is in; `None` for an order that goes all over the table.
    pub(crate) fn window(&self, position: u32) -> Option<u32> {
        match self {
            Self::Sequential { .. } => Some(position / SEQUENTIAL_WINDOW),
            Self::Blocks(shuffle) => Some(shuffle.window(position)),
            Self::Shuffled(_) | Self::Weighted { .. } => None,
        }
    }

    /// Calls `f` with each run of rows that a window needs; with none for a window beyond the last.
    pub(crate) fn for_each_range(&self, window: u32, f: impl FnMut(Range<usize>)) {
        match self {
            Self::Sequential { n_rows } => {
                let first = u64::from(window) * u64::from(SEQUENTIAL_WINDOW);
                let end = (first + u64::from(SEQUENTIAL_WINDOW)).min(u64::from(*n_rows));
                (first < end).then_some(first as usize..end as usize).into_iter().for_each(f);
            }
            Self::Blocks(shuffle) => shuffle.blocks(window).for_each(f),
            Self::Shuffled(_) | Self::Weighted { .. } => {}
        }
    }
}
