use std::ops::Range;

use crate::error::Error;

/// Which positions of an epoch's order belong to one rank of a run on several devices or machines.
///
/// With batches of `B` rows on each of `W` ranks, global batch `g` is positions `g·B·W` to `(g+1)·B·W` of the order, however they
/// are distributed; so the state of a run is one number, the number of positions that all ranks have consumed. Every row belongs
/// to exactly one rank. [`LastBatch`](crate::LastBatch) determines what happens at the end if the rows cannot be distributed
/// evenly; every rank has the same number of batches in any case, so that ranks which wait for each other never wait forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    pub(crate) deal: Deal,
}

/// How a global batch is distributed to ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deal {
    Blocks,
    Interleaved(Remainder),
    /// A batch of the loader consists of this many batches, each of which is cut into parts.
    Parts {
        n_batches: usize,
    },
}

/// What [`Shard::distributed_sampler`] does with the remainder if the number of ranks does not divide the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// Positions from the start are repeated until all ranks have the same number (`drop_last=False`). A repeated row has weight
    /// 0 and is not counted in [`Batch::rows`](crate::Batch::rows), so that an evaluation over all ranks counts every row once.
    Repeat,
    /// The remaining positions are dropped (`drop_last=True`).
    Drop,
}

impl Shard {
    /// All rows: a single rank.
    pub const WHOLE: Self = Self { rank: 0, world: 1, deal: Deal::Blocks };

    /// Rank `rank` of `world` takes the `rank`-th block of `B` consecutive positions of each global batch. For the same global
    /// batch size, the rows of a step are then the same, in the same order, on any number of ranks.
    pub fn blocks(rank: usize, world: usize) -> Self {
        Self { rank, world, deal: Deal::Blocks }
    }

    /// Rank `rank` of `world` takes its [part](Self::part) of each global batch: consecutive positions, as with
    /// [`blocks`](Self::blocks), but the number of ranks need not divide the batch. [`Batching::size`](crate::Batching::size) is
    /// the size of the batch of all ranks together, so that it is the same on any number of ranks, and a batch of the loader is
    /// this rank's part of it.
    ///
    /// With [`Order::Lanes`](crate::Order::Lanes) of the same batch size, a rank reads only its own regions of the source.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::{Batching, Loader, Rows, Shard};
    ///
    /// let rows = Rows::new(vec![0.5; 100], vec![1.0; 100], 1)?;
    /// let n_rows = [0, 1, 2].map(|rank| {
    ///     let mut loader = Loader::new(&rows, Batching::of(10).shard(Shard::parts(rank, 3))).expect("a rank of three");
    ///     let mut batches = loader.epoch(0);
    ///     batches.next_batch().expect("rows in memory").map(|batch| batch.rows)
    /// });
    /// assert_eq!(n_rows, [Some(3), Some(3), Some(4)]);
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn parts(rank: usize, world: usize) -> Self {
        Self { rank, world, deal: Deal::Parts { n_batches: 1 } }
    }

    /// The same parts, `n_batches` batches at a time: [`Batching::size`](crate::Batching::size), a multiple of `n_batches`, is
    /// the number of rows of that many global batches, and a batch of the loader has this rank's parts of them, one after the
    /// other. Shards that are not [`parts`](Self::parts) stay as they are.
    pub fn of_n_batches(self, n_batches: usize) -> Self {
        let deal = if matches!(self.deal, Deal::Parts { .. }) { Deal::Parts { n_batches } } else { self.deal };
        Self { deal, ..self }
    }

    /// This rank's part of `n` consecutive rows: parts are in the order of ranks, and differ by at most one row.
    pub fn part(self, n: usize) -> Range<usize> {
        let cut = |rank: usize| (n as u128 * rank as u128 / self.world.max(1) as u128) as usize;
        cut(self.rank)..cut(self.rank + 1)
    }

    /// Whether this rank takes its [part](Self::parts) of each batch.
    pub fn is_parts(self) -> bool {
        matches!(self.deal, Deal::Parts { .. })
    }

    /// Rank `rank` of `world` takes positions `rank`, `rank + world`, `rank + 2·world`, …: the rows that PyTorch's
    /// `DistributedSampler` gives that rank for the same order.
    pub fn distributed_sampler(rank: usize, world: usize, remainder: Remainder) -> Self {
        Self { rank, world, deal: Deal::Interleaved(remainder) }
    }

    /// The rank, from 0.
    pub fn rank(self) -> usize {
        self.rank
    }

    /// The number of ranks.
    pub fn world(self) -> usize {
        self.world
    }

    pub(crate) fn check(self) -> Result<(), Error> {
        if self.rank < self.world { Ok(()) } else { Err(Error::Shard { rank: self.rank, world: self.world }) }
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}
