use std::ops::Range;

use crate::gather::BLOCK;
use crate::shuffle::{FEW, Shuffle};

/// The order of one epoch over blocks of rows, for tables far larger than memory: blocks are shuffled, and rows are shuffled
/// within a window of several blocks. A reader that keeps the blocks of the current window in memory, and reads those of the next
/// one ahead, always has the rows it needs.
///
/// Like [`Shuffle`], it is a pure function of (seed, epoch, position), computed and never stored. A row stays within its window:
/// if one window has all blocks, this is a full shuffle; with one block per window, rows are shuffled only within blocks.
///
/// # Specification
/// Arithmetic is on `u64`, and wraps in `key`; `finish` and `Shuffle` are those of [`Shuffle`].
/// ```text
/// R = block_rows     W = window_blocks     n_blocks = ceil(n_rows / R)     missing = n_blocks * R - n_rows
///
/// key(k)    = finish(seed + k * 0x9E3779B97F4A7C15)
/// blocks    = Shuffle(n_blocks, key(0), epoch)                      position of a block -> block
/// short     = blocks.position_of(n_blocks - 1)                      where the block comes that has fewer rows
/// end(q)    = min(q, n_blocks) * R - (missing if q > short else 0)  rows of the first q blocks
///
/// row(position):
///     w      = the window with end(w * W) <= position < end((w + 1) * W)
///     first  = end(w * W)
///     j      = Shuffle(end((w + 1) * W) - first, key(w + 1), epoch).row(position - first)
///     j     += missing  if the short block is in this window and j >= end(short + 1) - first
///     blocks.row(w * W + j / R) * R + j % R
/// ```
///
/// # Examples
/// ```
/// use brisk_loader::BlockShuffle;
///
/// // Ten rows in blocks of four, two blocks a window.
/// let shuffle = BlockShuffle::new(10, 42, 0, 4, 2);
/// let rows: Vec<u32> = (0..10).map(|position| shuffle.row(position)).collect();
/// assert_eq!(rows, [4, 7, 8, 5, 6, 9, 2, 0, 3, 1]);
/// assert_eq!(shuffle.blocks(1).collect::<Vec<_>>(), [0..4]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockShuffle {
    /// The rows of the table that are shuffled: all of them, or those of a lane.
    region: Range<u32>,
    block_rows: u32,
    window_blocks: u32,
    seed: u64,
    epoch: u32,
    blocks: Shuffle,
    /// The first block, whose first rows may belong to the region before.
    first: Short,
    /// The last block, whose last rows may not exist or belong to the region after.
    last: Short,
}

/// A block that has fewer rows than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Short {
    /// The position at which the block comes; 0 if no rows are missing.
    position: u32,
    /// How many rows it has fewer.
    missing: u32,
}

impl BlockShuffle {
    /// The order of `epoch` under `seed`: blocks of `block_rows` rows, `window_blocks` of them shuffled together. 0 counts as 1.
    /// Does not allocate.
    pub fn new(n_rows: u32, seed: u64, epoch: u32, block_rows: u32, window_blocks: u32) -> Self {
        Self::of_region(0..n_rows, seed, epoch, block_rows, window_blocks)
    }

    /// The order of the rows of a region. Its blocks are those of the table, so that the first and the last may be only partly in
    /// the region.
    pub(crate) fn of_region(region: Range<u32>, seed: u64, epoch: u32, block_rows: u32, window_blocks: u32) -> Self {
        let (block_rows, window_blocks) = (block_rows.max(1), window_blocks.max(1));
        let first_block = region.start / block_rows;
        let n_blocks = if region.is_empty() { 0 } else { region.end.div_ceil(block_rows) - first_block };
        let blocks = Shuffle::new(n_blocks, key(seed, 0), epoch);
        // Both are less than a block.
        let before = if n_blocks == 0 { 0 } else { region.start % block_rows };
        let after = match region.end % block_rows {
            0 => 0,
            rest if n_blocks > 0 => block_rows - rest,
            _ => 0,
        };
        let short = |block: u32, missing| Short { position: if missing == 0 { 0 } else { blocks.position_of(block) }, missing };
        let (first, last) = (short(0, before), short(n_blocks.saturating_sub(1), after));
        Self { region, block_rows, window_blocks, seed, epoch, blocks, first, last }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u32 {
        self.region.end - self.region.start
    }

    /// The number of windows in the epoch.
    pub fn n_windows(&self) -> u32 {
        self.blocks.n_rows().div_ceil(self.window_blocks)
    }

    /// The positions of a window; empty beyond the last window.
    pub fn positions(&self, window: u32) -> Range<u32> {
        let first = u64::from(window) * u64::from(self.window_blocks);
        self.end(first) as u32..self.end(first + u64::from(self.window_blocks)) as u32
    }

    /// The window that contains a position.
    pub fn window(&self, position: u32) -> u32 {
        let window_blocks = u64::from(self.window_blocks);
        // Windows start at most two blocks earlier than if no rows were missing.
        let mut window = u64::from(position) / (window_blocks * u64::from(self.block_rows));
        while window < u64::from(self.n_windows()) && self.end((window + 1) * window_blocks) <= u64::from(position) {
            window += 1;
        }
        window as u32
    }

    /// The rows of each block of a window, in the order of the blocks; empty beyond the last window.
    pub fn blocks(&self, window: u32) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = u64::from(window) * u64::from(self.window_blocks);
        let positions = first..(first + u64::from(self.window_blocks)).min(u64::from(self.blocks.n_rows()));
        let first_block = (self.region.start / self.block_rows) as usize;
        positions.map(move |position| {
            let first = (first_block + self.blocks.row(position as u32) as usize) * self.block_rows as usize;
            first.max(self.region.start as usize)..(first + self.block_rows as usize).min(self.region.end as usize)
        })
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
            assert!(position < self.n_rows(), "index {position} is out of range for a shuffle of {} rows", self.n_rows());
            let window = self.window(position);
            let of = self.positions(window);
            let n = rest.iter().position(|position| !of.contains(position)).unwrap_or(rest.len());
            let (run, others) = rest.split_at_mut(n);
            rest = others;
            let shuffle = Shuffle::new(of.end - of.start, key(self.seed, u64::from(window) + 1), self.epoch);
            for positions in run.chunks_mut(BLOCK) {
                positions.iter_mut().for_each(|position| *position -= of.start);
                shuffle.permute(positions);
                if positions.len() <= FEW {
                    self.to_rows::<FEW>(window, of.start, positions);
                } else {
                    self.to_rows::<BLOCK>(window, of.start, positions);
                }
            }
        }
    }

    /// Converts rows counted along the blocks of a window to rows of the table; at most `N` of them.
    fn to_rows<const N: usize>(&self, window: u32, start: u32, along: &mut [u32]) {
        let mut blocks = [0_u32; N];
        let blocks = &mut blocks[..along.len()];
        let first = window * self.window_blocks;
        // From where on, along the blocks, the missing rows count: those of the first block are before its rows, those of the
        // last after them.
        let from = |short: Short, after: u64| {
            let is_here = short.missing > 0 && short.position / self.window_blocks == window;
            if is_here { (self.end(u64::from(short.position) + after) as u32 - start, short.missing) } else { (u32::MAX, 0) }
        };
        let ((from_first, before), (from_last, after)) = (from(self.first, 0), from(self.last, 1));
        for (block, along) in blocks.iter_mut().zip(along.iter_mut()) {
            let missing = if *along >= from_first { u64::from(before) } else { 0 };
            let missing = missing + if *along >= from_last { u64::from(after) } else { 0 };
            let j = u64::from(*along) + missing;
            *block = first + (j / u64::from(self.block_rows)) as u32;
            *along = (j % u64::from(self.block_rows)) as u32;
        }
        self.blocks.permute(blocks);
        let first_block = self.region.start / self.block_rows;
        for (block, along) in blocks.iter().zip(along) {
            *along += (first_block + block) * self.block_rows;
        }
    }

    /// The number of rows in the first `n` blocks.
    fn end(&self, n: u64) -> u64 {
        let whole = n.min(u64::from(self.blocks.n_rows())) * u64::from(self.block_rows);
        let missing = |short: Short| if n > u64::from(short.position) { u64::from(short.missing) } else { 0 };
        whole - missing(self.first) - missing(self.last)
    }
}

/// The seed of the order of blocks (0) and of each window (from 1).
fn key(seed: u64, k: u64) -> u64 {
    crate::shuffle::splitmix64_finish(seed.wrapping_add(k.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}
