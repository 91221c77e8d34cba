//! How twins divide their work: into blocks whose size depends only on the shape.

use rayon::prelude::*;

use crate::cpu::room::in_f32;
use crate::cpu::team::OnTeam;
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// Elements below which using other threads for a loop does not pay.
const SERIAL_LEN: usize = 16 * 1024 + 1;
/// Elements per task of an elementwise loop.
const BLOCK_LEN: usize = 8 * 1024;

/// Which threads a loop uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Threads {
    One,
    All,
}

impl Threads {
    /// All for at least `serial` elements of work; for fewer, using other threads does not pay.
    pub(crate) const fn for_work(n: usize, serial: usize) -> Self {
        if n < serial { Self::One } else { Self::All }
    }

    /// All if both are.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::One { self } else { other }
    }
}

/// Calls `f(i, chunk i of y)` for chunks of `len` elements.
pub(crate) fn each_chunk<T: Send>(threads: Threads, len: usize, y: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    let run = |(i, chunk): (usize, &mut [T])| f(i, chunk);
    match threads {
        Threads::One => y.chunks_mut(len).enumerate().for_each(run),
        Threads::All => y.par_chunks_mut(len).enumerate().for_each_on_team(run),
    }
}

/// Calls `f(offset, block of y)` for blocks that cover `y`, compiled for the vector instructions this machine has.
pub(crate) fn each_block<T: Send>(y: &mut [T], f: impl Fn(usize, &mut [T]) + Sync) {
    // One call site, so that `f` is inlined into the code compiled for the wider instructions.
    let run = |i: usize, block: &mut [T]| vectorised(inlined!(|| f(i * BLOCK_LEN, block)));
    each_chunk(Threads::for_work(y.len(), SERIAL_LEN), BLOCK_LEN, y, run);
}

/// Calls `f(row, y[row, ..])` for each row of `n_cols` elements.
pub(crate) fn each_row(n_cols: usize, y: &mut [f32], f: impl Fn(usize, &mut [f32]) + Sync) {
    each_row_in_f32(n_cols, y, f);
}

/// The same over rows stored in 16 bits: `f` writes f32, which is rounded afterwards, some rows at a time.
pub(crate) fn each_row_in_f32<T: Element>(n_cols: usize, y: &mut [T], f: impl Fn(usize, &mut [f32]) + Sync) {
    let n_rows = (16 * 1024 / n_cols).max(1);
    each_chunk(Threads::for_work(y.len(), 64 * 1024), n_rows * n_cols, y, |i, y| {
        vectorised(inlined!(|| {
            in_f32(
                y,
                inlined!(|y| {
                    for (row, y) in y.chunks_exact_mut(n_cols).enumerate() {
                        f(i * n_rows + row, y);
                    }
                }),
            );
        }));
    });
}

/// The bounds of `n` divided into at most `n_parts` parts of nearly equal length, each a multiple of `multiple` except the last.
pub(crate) fn cut(n: usize, n_parts: usize, multiple: usize) -> Vec<std::ops::Range<usize>> {
    let len = n.div_ceil(n_parts.max(1)).next_multiple_of(multiple.max(1)).max(1);
    (0..n).step_by(len).map(|start| start..(start + len).min(n)).collect()
}
