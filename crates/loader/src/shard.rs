use crate::Error;

/// Which positions of the epoch's order are one rank's, of a run on several devices or machines.
///
/// With batches of `B` rows on each of `W` ranks, global batch `g` is positions `g·B·W` to `(g+1)·B·W` of the order, however it is dealt out; so
/// the state of a run is one number, the positions that all ranks have consumed. Every row is one rank's, once. What happens at the end, where
/// the rows do not come out even, is [`LastBatch`](crate::LastBatch)'s to say; every rank has the same number of batches in any case, so
/// that ranks which wait for each other never wait forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    pub(crate) rank: usize,
    pub(crate) world: usize,
    pub(crate) deal: Deal,
}

/// How a global batch is dealt to ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deal {
    Blocks,
    Interleaved(Uneven),
}

/// What [`Shard::distributed_sampler`] does where ranks do not divide rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uneven {
    /// Positions from the start come again until all ranks have as many (`drop_last=False`). A row that comes again has weight 0 and is not
    /// counted in [`Batch::rows`](crate::Batch::rows), so that an evaluation over all ranks counts every row once.
    Repeat,
    /// The positions that would leave ranks uneven are left out (`drop_last=True`).
    Drop,
}

impl Shard {
    /// All rows: one rank of one.
    pub const WHOLE: Self = Self { rank: 0, world: 1, deal: Deal::Blocks };

    /// Rank `rank` of `world` takes the `rank`-th run of `B` positions of each global batch. For one global batch size the rows of a
    /// step are then the same, in the same order, on any number of ranks.
    pub fn blocks(rank: usize, world: usize) -> Self {
        Self { rank, world, deal: Deal::Blocks }
    }

    /// Rank `rank` of `world` takes positions `rank`, `rank + world`, `rank + 2·world`, …: the rows that PyTorch's `DistributedSampler`
    /// gives that rank for the same order.
    pub fn distributed_sampler(rank: usize, world: usize, uneven: Uneven) -> Self {
        Self { rank, world, deal: Deal::Interleaved(uneven) }
    }

    /// Which rank this is, from 0.
    pub fn rank(self) -> usize {
        self.rank
    }

    /// How many ranks there are.
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
