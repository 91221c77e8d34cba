use crate::error::Error;

/// Which positions of an epoch's order belong to one rank of a run on several devices or machines.
///
/// With batches of `B` rows on each of `W` ranks, global batch `g` is positions `g·B·W` to `(g+1)·B·W` of the order, however they are distributed; so
/// the state of a run is one number, the number of positions that all ranks have consumed. Every row belongs to exactly one rank.
/// [`LastBatch`](crate::LastBatch) determines what happens at the end if the rows cannot be distributed evenly; every rank has the same number of
/// batches in any case, so that ranks which wait for each other never wait forever.
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
}

/// What [`Shard::distributed_sampler`] does with the remainder if the number of ranks does not divide the number of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remainder {
    /// Positions from the start are repeated until all ranks have the same number (`drop_last=False`). A repeated row has weight 0 and is not
    /// counted in [`Batch::rows`](crate::Batch::rows), so that an evaluation over all ranks counts every row once.
    Repeat,
    /// The remaining positions are dropped (`drop_last=True`).
    Drop,
}

impl Shard {
    /// All rows: a single rank.
    pub const WHOLE: Self = Self { rank: 0, world: 1, deal: Deal::Blocks };

    /// Rank `rank` of `world` takes the `rank`-th block of `B` consecutive positions of each global batch. For the same global batch size, the rows of
    /// a step are then the same, in the same order, on any number of ranks.
    pub fn blocks(rank: usize, world: usize) -> Self {
        Self { rank, world, deal: Deal::Blocks }
    }

    /// Rank `rank` of `world` takes positions `rank`, `rank + world`, `rank + 2·world`, …: the rows that PyTorch's `DistributedSampler`
    /// gives that rank for the same order.
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
