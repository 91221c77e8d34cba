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
    /// The lanes of the order that this rank takes rows from.
    lanes: Range<u32>,
}

/// The contents of a batch. The slots before `n_real` are real rows, those before `n_dealt` repeated rows, those before `n_slots`
/// padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Slots {
    pub(crate) n_real: usize,
    pub(crate) n_dealt: usize,
    pub(crate) n_slots: usize,
    first: usize,
    step: usize,
    /// After so many slots, positions jump from the first of them by `jump`.
    run: usize,
    jump: usize,
}

impl Slots {
    fn position(self, slot: usize) -> usize {
        self.first + slot / self.run * self.jump + slot % self.run * self.step
    }
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
        let plan = Self { batching: batching.clone(), epoch, order, n_positions, start, lanes: 0..0 };
        Ok(Self { lanes: plan.order.lanes_of(plan.batch_rows(), plan.slots_of_rank()), ..plan })
    }

    /// The key of the randomness of this epoch.
    pub(crate) fn key(&self) -> Key {
        Key { seed: self.batching.order.seed(), epoch: self.epoch }
    }

    /// The number of positions in a global batch: one batch of each rank.
    fn global_size(&self) -> usize {
        match self.batching.shard.deal {
            Deal::Parts { .. } => self.batching.size,
            Deal::Blocks | Deal::Interleaved(_) => self.batching.size.saturating_mul(self.batching.shard.world),
        }
    }

    /// The number of positions in a batch of all ranks, of which there may be several in a global batch.
    fn batch_rows(&self) -> usize {
        match self.batching.shard.deal {
            Deal::Parts { n_batches } => self.batching.size / n_batches.max(1),
            Deal::Blocks | Deal::Interleaved(_) => self.global_size(),
        }
    }

    /// The slots of each batch of all ranks that are this rank's, if they are the same in every batch of the order; otherwise all
    /// of them.
    fn slots_of_rank(&self) -> Range<usize> {
        let (shard, size, batch_rows) = (self.batching.shard, self.batching.size, self.batch_rows());
        match shard.deal {
            _ if !self.start.is_multiple_of(batch_rows.max(1)) => 0..batch_rows,
            Deal::Parts { .. } => shard.part(batch_rows),
            Deal::Blocks => shard.rank.saturating_mul(size)..shard.rank.saturating_add(1).saturating_mul(size),
            Deal::Interleaved(_) => 0..batch_rows,
        }
    }

    /// The number of positions of one rank, including repeats; only for an interleaved shard, where it does not depend on the
    /// batch size.
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
            Deal::Blocks | Deal::Parts { .. } => (self.n_positions - self.start, self.global_size()),
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
        if let Deal::Parts { .. } = shard.deal {
            return self.slots_of_parts(base);
        }
        let (first, step, most) = match shard.deal {
            Deal::Interleaved(remainder) => {
                let most = self.n_interleaved(remainder).saturating_sub(nth * size).min(size);
                (base.saturating_add(shard.rank), shard.world, most)
            }
            _ => (base.saturating_add(shard.rank.saturating_mul(size)), 1, size),
        };
        let n_real = self.n_positions.saturating_sub(first).div_ceil(step).min(most);
        let n_dealt = if shard.deal == Deal::Blocks { n_real } else { most };
        let n_slots = if self.batching.last == LastBatch::Short { n_dealt } else { size };
        Slots { n_real, n_dealt, n_slots, first, step, run: usize::MAX, jump: 0 }
    }

    /// The parts of several batches: of all of them, or of those up to the end of the epoch, the last of which may be short.
    fn slots_of_parts(&self, base: usize) -> Slots {
        let (batch_rows, most) = (self.batch_rows(), self.batching.n_slots());
        let part = self.batching.shard.part(batch_rows);
        let n_left = self.n_positions.saturating_sub(base).min(self.batching.size);
        let (n_whole, n_last) = (n_left / batch_rows, n_left % batch_rows);
        let n_real = n_whole * part.len() + n_last.clamp(part.start, part.end) - part.start;
        let n_slots = if self.batching.last == LastBatch::Short { n_real } else { most };
        Slots { n_real, n_dealt: n_real, n_slots, first: base + part.start, step: 1, run: part.len().max(1), jump: batch_rows }
    }

    /// Whether the rows of a batch are consecutive in the source.
    pub(crate) fn is_run(&self) -> bool {
        let is_consecutive = match self.batching.shard.deal {
            Deal::Blocks => true,
            Deal::Interleaved(_) => self.batching.shard.world == 1,
            Deal::Parts { n_batches } => n_batches == 1 || self.batching.shard.world == 1,
        };
        self.order.is_sequential() && is_consecutive
    }

    /// The rows in some real slots of a batch, if [`is_run`](Self::is_run).
    pub(crate) fn run(&self, of: Slots, slots: Range<usize>) -> Range<usize> {
        of.first + slots.start..of.first + slots.end
    }

    /// The row numbers of some real slots of a batch, from slot `from` on.
    pub(crate) fn ids(&self, of: Slots, from: usize, ids: &mut [u32]) {
        let (mut position, mut within) = (of.position(from), from % of.run);
        for id in ids.iter_mut() {
            // The position of a real slot is below the number of rows, which is a `u32`; only the position after the last one may
            // not be.
            *id = position as u32;
            within += 1;
            position = position.wrapping_add(of.step);
            if within == of.run {
                (within, position) = (0, position.wrapping_add(of.jump).wrapping_sub(of.run.wrapping_mul(of.step)));
            }
        }
        self.order.permute(ids);
    }

    /// The row number of a repeated slot: positions continue from the start of the epoch.
    pub(crate) fn repeated_id(&self, of: Slots, slot: usize) -> u32 {
        self.order.row((of.position(slot) % self.n_positions) as u32)
    }

    /// The windows of the order that batch `nth` of all ranks takes rows from; `None` if rows come from the whole table.
    pub(crate) fn windows(&self, nth: usize) -> Option<Range<u32>> {
        self.order.windows(self.position_after(nth) as u32..self.position_after(nth + 1) as u32)
    }

    /// Calls `f` with the ranges of rows that this rank needs in some windows.
    pub(crate) fn for_each_range(&self, windows: Range<u32>, mut f: impl FnMut(Range<usize>)) {
        for window in windows {
            self.order.for_each_range(window, self.lanes.clone(), &mut f);
        }
    }
}
