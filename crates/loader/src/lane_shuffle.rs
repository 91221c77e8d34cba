use std::fmt;
use std::ops::Range;

use crate::block_shuffle::BlockShuffle;
use crate::error::Error;
use crate::shuffle::splitmix64_finish;

/// The sizes of an order by lanes, see [`LaneShuffle`]. They must be the same on all ranks, and do not depend on the number of
/// ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lanes {
    /// The seed of the training run; `None` takes the rows of each lane in the order of the source.
    pub seed: Option<u64>,
    /// The number of rows in a batch of all ranks together; a multiple of `n_lanes`.
    pub batch_rows: u32,
    /// The number of lanes. Ranks whose number divides it have no lane in common.
    pub n_lanes: u32,
    /// The number of rows in a block; at least 1.
    pub block_rows: u32,
    /// The number of blocks of a lane that are shuffled together; at least 1. Of each lane, two windows are in memory at a time,
    /// or three where one ends.
    pub window_blocks: u32,
}

impl Lanes {
    /// Lanes for batches of `batch_rows` rows of `row_bytes` bytes: up to 64, with at least 16 rows of each in a batch, so that
    /// rows are copied in runs. Blocks have about 1 MiB, since tables on a server are read by as much, and the windows of all
    /// lanes together have at least 16 blocks. `None` for a batch that cannot be divided into at least two lanes. With more ranks
    /// than lanes, several ranks read the same lane: choose more lanes then.
    pub fn of_batches(batch_rows: usize, row_bytes: usize, seed: Option<u64>) -> Option<Self> {
        const LANE_ROWS: usize = 16;
        const MAX_LANES: usize = 64;
        let most = (batch_rows / LANE_ROWS).min(MAX_LANES);
        let n_lanes = (2..=most).rev().find(|n_lanes| batch_rows.is_multiple_of(*n_lanes))?;
        let block_rows = rows_of_a_block(row_bytes);
        let batch_rows = u32::try_from(batch_rows).ok()?;
        let window_blocks = WINDOWS_BLOCKS.div_ceil(n_lanes) as u32;
        Some(Self { seed, batch_rows, n_lanes: n_lanes as u32, block_rows, window_blocks })
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let &Self { batch_rows, n_lanes, block_rows, window_blocks, .. } = self;
        if block_rows == 0 || window_blocks == 0 {
            return Err(Error::Blocks { block_rows, window_blocks });
        }
        let is_even = batch_rows.checked_rem(n_lanes) == Some(0) && batch_rows > 0;
        if is_even { Ok(()) } else { Err(Error::Lanes { batch_rows, n_lanes }) }
    }
}

/// The blocks that are shuffled together, of all lanes.
pub(crate) const WINDOWS_BLOCKS: usize = 16;

/// The number of rows of `row_bytes` bytes in a block of about 1 MiB.
pub(crate) fn rows_of_a_block(row_bytes: usize) -> u32 {
    /// 1 MiB of features, if labels and weights add up to an eighth of that. A block of a power of two such rows then is one
    /// request, where their size allows it.
    const BLOCK_BYTES: usize = 9 << 17;
    let block_rows = (BLOCK_BYTES / row_bytes.max(1)).max(1);
    // A power of two, as blocks of files are; there are fewer than 2^32 rows.
    1 << block_rows.ilog2().min(31)
}

/// `lanes:42:1024:64:4096:2`: the seed (`none` in the order of the source), rows of a batch, lanes, rows of a block, blocks of a
/// window.
impl fmt::Display for Lanes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, batch_rows, n_lanes, block_rows, window_blocks } = self;
        let seed = seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string());
        write!(f, "lanes:{seed}:{batch_rows}:{n_lanes}:{block_rows}:{window_blocks}")
    }
}

/// The order of one epoch over lanes, for a source that several ranks read together: a lane is a region of consecutive rows, and
/// every batch takes the same number of rows of each lane. The rows of a batch are sorted by lane, so that a rank's
/// [part](crate::Shard::parts) of every batch comes from the same few neighbouring lanes, on any number of ranks, and the global
/// batches do not depend on that number.
///
/// Within a lane, rows are shuffled as by [`BlockShuffle`]: blocks of the lane, and rows within windows of several blocks. Blocks
/// are those of the source (the rows from a multiple of `block_rows` on), so that a block in which one lane ends and the next
/// begins belongs to both, each of which has its own rows of it.
///
/// It is a pure function of (seed, epoch, position), computed and never stored; every row occurs once in an epoch, and every
/// batch but the last has `batch_rows` rows. A last batch that is short takes rows of the first lanes only.
///
/// # Specification
/// Arithmetic is on `u64`, and wraps in `seed_of`; `finish`, `Shuffle` and `key` are those of [`Shuffle`](crate::Shuffle) and
/// [`BlockShuffle`]. Slot `k` of every batch belongs to lane `k / Q`, and takes the rows of its lane one after the other.
/// ```text
/// B = batch_rows     L = n_lanes     Q = B / L     R = block_rows     W = window_blocks
/// G = ceil(n_rows / B)        batches            S = n_rows - (G - 1) * B        rows of the last batch
///
/// start(l)   = l * Q * (G - 1) + min(l * Q, S)      first row of lane l; its rows are start(l) .. start(l + 1)
/// seed_of(l) = finish(seed + (l + 1) * 0xA0761D6478BD642F)
///
/// row(position):
///     b = position / B     k = position % B     l = k / Q
///     j = b * Q + k % Q                             the place in the lane
///     without a seed:  start(l) + j
///     with a seed:     of_lane(l, j)
///
/// of_lane(l, j):                                    BlockShuffle of seed_of(l), over the blocks that the lane has rows of
///     first_block = start(l) / R          n_blocks = ceil(start(l + 1) / R) - first_block
///     before      = start(l) % R          after    = (R - start(l + 1) % R) % R     rows that the first and last block lack
///     blocks      = Shuffle(n_blocks, key(0), epoch)
///     p_first     = blocks.position_of(0)          p_last   = blocks.position_of(n_blocks - 1)
///     end(q)      = min(q, n_blocks) * R - (before if q > p_first else 0) - (after if q > p_last else 0)
///
///     w  = the window with end(w * W) <= j < end((w + 1) * W)          first = end(w * W)
///     i  = Shuffle(end((w + 1) * W) - first, key(w + 1), epoch).row(j - first)
///     both conditions on the i of the line before:
///     i  = i + (before if p_first is in this window and i >= end(p_first) - first)
///            + (after  if p_last  is in this window and i >= end(p_last + 1) - first)
///     (first_block + blocks.row(w * W + i / R)) * R + i % R
/// ```
///
/// # Examples
/// ```
/// use brisk_loader::{LaneShuffle, Lanes};
///
/// // Eleven rows in batches of four, two rows from each of two lanes.
/// let lanes = Lanes { seed: None, batch_rows: 4, n_lanes: 2, block_rows: 2, window_blocks: 1 };
/// let shuffle = LaneShuffle::new(11, lanes, 0);
/// assert_eq!((shuffle.lane(0), shuffle.lane(1)), (0..6, 6..11));
/// let rows: Vec<u32> = (0..11).map(|position| shuffle.row(position)).collect();
/// assert_eq!(rows, [0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneShuffle {
    n_rows: u32,
    lanes: Lanes,
    epoch: u32,
    /// Rows of a lane in a batch.
    lane_rows: u32,
    /// Batches before the last.
    n_before_last: u32,
    /// Rows of the last batch.
    n_last: u32,
}

impl LaneShuffle {
    /// The order of `epoch`. A size of 0 counts as 1, and if the lanes do not divide the batch, the last lane has fewer rows of
    /// it. Does not allocate.
    pub fn new(n_rows: u32, lanes: Lanes, epoch: u32) -> Self {
        let batch_rows = lanes.batch_rows.max(1);
        let lane_rows = batch_rows.div_ceil(lanes.n_lanes.max(1));
        let n_before_last = n_rows.div_ceil(batch_rows).saturating_sub(1);
        let lanes = Lanes { batch_rows, n_lanes: batch_rows.div_ceil(lane_rows), ..lanes };
        Self { n_rows, lanes, epoch, lane_rows, n_before_last, n_last: n_rows - n_before_last * batch_rows }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u32 {
        self.n_rows
    }

    /// The rows of a lane; empty beyond the last lane.
    pub fn lane(&self, lane: u32) -> Range<u32> {
        self.start(lane)..self.start(lane.saturating_add(1))
    }

    /// The first row of a lane.
    fn start(&self, lane: u32) -> u32 {
        let slots = lane.saturating_mul(self.lane_rows).min(self.lanes.batch_rows);
        // At most the number of rows.
        slots * self.n_before_last + slots.min(self.n_last)
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
        let mut rest = positions;
        while let Some(&position) = rest.first() {
            assert!(position < self.n_rows, "index {position} is out of range for a shuffle of {} rows", self.n_rows);
            let (batch, slot) = (position / self.lanes.batch_rows, position % self.lanes.batch_rows);
            let lane = slot / self.lane_rows;
            // The positions of this lane in this batch.
            let of = position - slot % self.lane_rows..(position - slot % self.lane_rows).saturating_add(self.lane_rows);
            let of = of.start..of.end.min(position - slot + self.lanes.batch_rows.min(self.n_rows - (position - slot)));
            let n = rest.iter().position(|position| !of.contains(position)).unwrap_or(rest.len());
            let (run, others) = rest.split_at_mut(n);
            rest = others;
            let first = batch * self.lane_rows;
            match self.shuffle(lane) {
                None => {
                    let start = self.start(lane);
                    run.iter_mut().for_each(|position| *position = start + first + (*position - of.start));
                }
                Some(shuffle) => {
                    run.iter_mut().for_each(|position| *position = first + (*position - of.start));
                    shuffle.permute(run);
                }
            }
        }
    }

    /// The order within a lane, if it is shuffled.
    fn shuffle(&self, lane: u32) -> Option<BlockShuffle> {
        self.lanes.seed.map(|seed| self.blocks_of(lane, seed))
    }

    fn blocks_of(&self, lane: u32, seed: u64) -> BlockShuffle {
        let seed = splitmix64_finish(seed.wrapping_add((u64::from(lane) + 1).wrapping_mul(0xA076_1D64_78BD_642F)));
        let Lanes { block_rows, window_blocks, .. } = self.lanes;
        BlockShuffle::of_region(self.lane(lane), seed, self.epoch, block_rows, window_blocks)
    }

    fn window_rows(&self) -> u64 {
        u64::from(self.lanes.block_rows.max(1)) * u64::from(self.lanes.window_blocks.max(1))
    }

    /// The windows that any lane needs for the batches with some positions.
    pub(crate) fn windows(&self, positions: Range<u32>) -> Range<u32> {
        let in_lane = |batch: u32| u64::from(batch) * u64::from(self.lane_rows);
        let first = in_lane(positions.start / self.lanes.batch_rows);
        let last = in_lane((positions.end - 1) / self.lanes.batch_rows + 1) - 1;
        // Where the first and the last block of a lane lack rows, its windows start earlier than those of other lanes, by less
        // than two blocks.
        let lacking = if self.lanes.seed.is_some() { 2 * u64::from(self.lanes.block_rows.max(1) - 1) } else { 0 };
        (first / self.window_rows()) as u32..((last + lacking) / self.window_rows() + 1) as u32
    }

    /// The lanes of some slots of each batch of `batch_rows` rows; all lanes if that is not the batch of this order.
    pub(crate) fn lanes_of(&self, batch_rows: usize, slots: Range<usize>) -> Range<u32> {
        if batch_rows != self.lanes.batch_rows as usize {
            return 0..self.lanes.n_lanes;
        }
        // Slots are below the size of a batch.
        let slots = slots.start.min(batch_rows) as u32..slots.end.min(batch_rows) as u32;
        if slots.is_empty() { 0..0 } else { slots.start / self.lane_rows..slots.end.div_ceil(self.lane_rows) }
    }

    /// Calls `f` with the rows of a lane's window, block by block; never beyond the last window.
    pub(crate) fn for_each_block(&self, lane: u32, window: u32, f: &mut impl FnMut(Range<usize>)) {
        if let Some(shuffle) = self.shuffle(lane) {
            return shuffle.blocks(window).for_each(f);
        }
        let (rows, first) = (self.lane(lane), u64::from(window) * self.window_rows());
        let start = (u64::from(rows.start) + first).min(u64::from(rows.end));
        let end = (start + self.window_rows()).min(u64::from(rows.end));
        if start < end {
            f(start as usize..end as usize);
        }
    }
}
