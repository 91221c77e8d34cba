//! Which rows belong to which batch; arithmetic only, no data.

use std::ops::Range;

use crate::batch::{Batching, LastBatch};
use crate::error::Error;
use crate::key::Key;
use crate::order::EpochOrder;
use crate::shard::{Deal, Remainder};

/// The batches of one rank in one epoch, from a position on.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    batching: Batching,
    epoch: u32,
    order: EpochOrder,
    n_positions: usize,
    start: usize,
}

/// The contents of a batch. The slots before `n_real` are real rows, those before `n_dealt` repeated rows, those before `n_slots` padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) n_real: usize,
    pub(crate) n_dealt: usize,
    pub(crate) n_slots: usize,
    first: usize,
    step: usize,
}

impl Plan {
    pub(crate) fn new(batching: &Batching, n_rows: usize, epoch: u32, start: usize) -> Result<Self, Error> {
        batching.order.check(n_rows)?;
        let n = u32::try_from(n_rows).map_err(|_| Error::TooManyRows { n_rows })?;
        let order = batching.order.of_epoch(n, epoch);
        let n_positions = order.n_positions() as usize;
        if start > n_positions {
            return Err(Error::Position { position: start, n_rows: n_positions });
        }
        Ok(Self { batching: batching.clone(), epoch, order, n_positions, start })
    }

    /// The key of the randomness of this epoch.
    pub(crate) fn key(&self) -> Key {
        Key { seed: self.batching.order.seed(), epoch: self.epoch }
    }

    /// The number of positions in a global batch: one batch of each rank.
    fn global_size(&self) -> usize {
        self.batching.size.saturating_mul(self.batching.shard.world)
    }

    /// The number of positions of one rank, including repeats; only for an interleaved shard, where it does not depend on the batch size.
    fn n_interleaved(&self, remainder: Remainder) -> usize {
        let (left, world) = (self.n_positions - self.start, self.batching.shard.world);
        match remainder {
            Remainder::Repeat => left.div_ceil(world),
            Remainder::Drop => left / world,
        }
    }

    /// The number of batches; the same for every rank.
    pub(crate) fn n_batches(&self) -> usize {
        let (n, size) = match self.batching.shard.deal {
            Deal::Blocks => (self.n_positions - self.start, self.global_size()),
            Deal::Interleaved(remainder) => (self.n_interleaved(remainder), self.batching.size),
        };
        match self.batching.last {
            LastBatch::Pad | LastBatch::Short => n.div_ceil(size),
            LastBatch::Drop => n / size,
        }
    }

    /// The position of all ranks together after the first `n` batches of this plan.
    pub(crate) fn position_after(&self, n: usize) -> usize {
        self.start.saturating_add(n.saturating_mul(self.global_size())).min(self.n_positions)
    }

    /// The index of the plan's batch `nth` within its epoch.
    pub(crate) fn index(&self, nth: usize) -> usize {
        self.start / self.global_size() + nth
    }

    pub(crate) fn slots(&self, nth: usize) -> Slots {
        let size = self.batching.size;
        let shard = self.batching.shard;
        let base = self.start + nth * self.global_size();
        let (first, step, most) = match shard.deal {
            Deal::Blocks => (base.saturating_add(shard.rank.saturating_mul(size)), 1, size),
            Deal::Interleaved(remainder) => {
                let most = self.n_interleaved(remainder).saturating_sub(nth * size).min(size);
                (base.saturating_add(shard.rank), shard.world, most)
            }
        };
        let n_real = self.n_positions.saturating_sub(first).div_ceil(step).min(most);
        let n_dealt = if shard.deal == Deal::Blocks { n_real } else { most };
        let n_slots = if self.batching.last == LastBatch::Short { n_dealt } else { size };
        Slots { n_real, n_dealt, n_slots, first, step }
    }

    /// Whether the rows of a batch are consecutive in the source.
    pub(crate) fn is_run(&self) -> bool {
        self.order.is_sequential() && (self.batching.shard.deal == Deal::Blocks || self.batching.shard.world == 1)
    }

    /// The rows in some real slots of a batch, if [`is_run`](Self::is_run).
    pub(crate) fn run(&self, of: Slots, slots: Range<usize>) -> Range<usize> {
        of.first + slots.start..of.first + slots.end
    }

    /// The row numbers of some real slots of a batch, from slot `from` on.
    pub(crate) fn ids(&self, of: Slots, from: usize, ids: &mut [u32]) {
        // The position of a real slot is below the number of rows, which is a `u32`; only the position after the last one may not be.
        let mut position = (of.first + from * of.step) as u32;
        for id in ids.iter_mut() {
            *id = position;
            position = position.wrapping_add(of.step as u32);
        }
        self.order.permute(ids);
    }

    /// The row number of a repeated slot: positions continue from the start of the epoch.
    pub(crate) fn repeated_id(&self, of: Slots, slot: usize) -> u32 {
        let position = ((of.first + slot * of.step) % self.n_positions) as u32;
        self.order.row(position)
    }

    /// The windows of the order that batch `nth` of all ranks takes rows from; `None` if rows come from the whole table.
    pub(crate) fn windows(&self, nth: usize) -> Option<Range<u32>> {
        let first = self.position_after(nth);
        let last = self.position_after(nth + 1).checked_sub(1).filter(|&last| last >= first)?;
        Some(self.order.window(first as u32)?..self.order.window(last as u32)? + 1)
    }

    /// Calls `f` with the ranges of rows of some windows.
    pub(crate) fn for_each_range(&self, windows: Range<u32>, mut f: impl FnMut(Range<usize>)) {
        for window in windows {
            self.order.for_each_range(window, &mut f);
        }
    }
}
