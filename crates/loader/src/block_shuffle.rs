use std::ops::Range;

use crate::gather::BLOCK;
use crate::shuffle::Shuffle;

/// The order of one epoch over blocks of rows, for tables far larger than memory: blocks are shuffled, and rows are shuffled within a window of
/// several blocks. A reader that keeps the blocks of the current window in memory, and reads those of the next one ahead, always has the rows it needs.
///
/// Like [`Shuffle`], it is a pure function of (seed, epoch, position), computed and never stored. A row stays within its window: if one window
/// has all blocks, this is a full shuffle; with one block per window, rows are shuffled only within blocks.
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
    n_rows: u32,
    block_rows: u32,
    window_blocks: u32,
    seed: u64,
    epoch: u32,
    blocks: Shuffle,
    /// The position of the last block, which has `missing` rows fewer than the others.
    short: u32,
    missing: u32,
}

impl BlockShuffle {
    /// The order of `epoch` under `seed`: blocks of `block_rows` rows, `window_blocks` of them shuffled together. 0 counts as 1. Does not allocate.
    pub fn new(n_rows: u32, seed: u64, epoch: u32, block_rows: u32, window_blocks: u32) -> Self {
        let (block_rows, window_blocks) = (block_rows.max(1), window_blocks.max(1));
        let n_blocks = n_rows.div_ceil(block_rows);
        let blocks = Shuffle::new(n_blocks, key(seed, 0), epoch);
        let short = if n_blocks == 0 { 0 } else { blocks.position_of(n_blocks - 1) };
        // Less than a block.
        let missing = (u64::from(n_blocks) * u64::from(block_rows) - u64::from(n_rows)) as u32;
        Self { n_rows, block_rows, window_blocks, seed, epoch, blocks, short, missing }
    }

    /// The number of rows.
    pub fn n_rows(&self) -> u32 {
        self.n_rows
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
        let window_rows = u64::from(self.window_blocks) * u64::from(self.block_rows);
        let after_short = self.positions(self.short / self.window_blocks).end;
        // After the window of the short block, all positions are smaller by the number of missing rows.
        let missing = if position < after_short { 0 } else { self.missing };
        ((u64::from(position) + u64::from(missing)) / window_rows) as u32
    }

    /// The rows of each block of a window, in the order of the blocks; empty beyond the last window.
    pub fn blocks(&self, window: u32) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = u64::from(window) * u64::from(self.window_blocks);
        let positions = first..(first + u64::from(self.window_blocks)).min(u64::from(self.blocks.n_rows()));
        positions.map(|position| {
            let first = self.blocks.row(position as u32) as usize * self.block_rows as usize;
            first..(first + self.block_rows as usize).min(self.n_rows as usize)
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
            assert!(position < self.n_rows, "index {position} is out of range for a shuffle of {} rows", self.n_rows);
            let window = self.window(position);
            let of = self.positions(window);
            let n = rest.iter().position(|position| !of.contains(position)).unwrap_or(rest.len());
            let (run, others) = rest.split_at_mut(n);
            rest = others;
            let shuffle = Shuffle::new(of.end - of.start, key(self.seed, u64::from(window) + 1), self.epoch);
            for positions in run.chunks_mut(BLOCK) {
                positions.iter_mut().for_each(|position| *position -= of.start);
                shuffle.permute(positions);
                self.to_rows(window, of.start, positions);
            }
        }
    }

    /// Converts rows counted along the blocks of a window to rows of the table; at most [`BLOCK`] of them.
    fn to_rows(&self, window: u32, start: u32, along: &mut [u32]) {
        let mut blocks = [0_u32; BLOCK];
        let blocks = &mut blocks[..along.len()];
        let first = window * self.window_blocks;
        let has_short = self.short / self.window_blocks == window;
        let (after_short, missing) =
            if has_short { (self.end(u64::from(self.short) + 1) as u32 - start, self.missing) } else { (u32::MAX, 0) };
        for (block, along) in blocks.iter_mut().zip(along.iter_mut()) {
            let j = u64::from(*along) + u64::from(if *along >= after_short { missing } else { 0 });
            *block = first + (j / u64::from(self.block_rows)) as u32;
            *along = (j % u64::from(self.block_rows)) as u32;
        }
        self.blocks.permute(blocks);
        for (block, along) in blocks.iter().zip(along) {
            *along += block * self.block_rows;
        }
    }

    /// The number of rows in the first `n` blocks.
    fn end(&self, n: u64) -> u64 {
        let whole = n.min(u64::from(self.blocks.n_rows())) * u64::from(self.block_rows);
        whole - u64::from(if n > u64::from(self.short) { self.missing } else { 0 })
    }
}

/// The seed of the order of blocks (0) and of each window (from 1).
fn key(seed: u64, k: u64) -> u64 {
    crate::shuffle::splitmix64_finish(seed.wrapping_add(k.wrapping_mul(0x9E37_79B9_7F4A_7C15)))
}
