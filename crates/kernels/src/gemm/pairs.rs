//! Matrix products of operands in bf16, by [matrix instructions](super::bf16), with sums in f32.
//!
//! The right side is packed in panels of 32 columns, each with its elements in pairs along K, one line a pair. The rows of the left side are read where they lie if they are contiguous along
//! K and whole, else they are packed, too. Operands are padded with 0.

use std::ops::Range;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut, pod_align_to_mut};
use half::bf16;
use rayon::prelude::*;

use super::bf16::{Bf16Instructions, HEIGHT, LANES, Lines, PairLine, STEP, Step, Sums, WIDTH};
use crate::cpu::room::with_room;
use crate::cpu::team::OnTeam;
use crate::cpu::transpose::{Word, transpose_rows};
use crate::cpu::vectorised::vectorised;
use crate::gemm::gemm::{Onto, Threads};

/// K indices that are multiplied at a time, so that the rows of a block and a panel stay in the first-level cache.
pub(crate) const DEPTH: usize = 512;
/// Elements below which packing on other threads takes longer than packing on one.
const SERIAL_LEN: usize = 64 * 1024;

/// A matrix in bf16, of which element `(i, k)` is `data[i * stride + k]`, or `data[i + k * stride]` if `k` is the outer index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a> {
    pub(crate) data: &'a [bf16],
    /// Rows of a left side, columns of a right one.
    pub(crate) n: usize,
    pub(crate) stride: usize,
    pub(crate) k_is_outer: bool,
}

/// A right side `[k, n]`, packed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Panels<'a> {
    lines: &'a [PairLine],
    n: usize,
    /// Lines of a panel.
    n_pairs: usize,
    /// The first line of each panel that is multiplied.
    first: usize,
}

/// K indices of a right side that are packed together: several segments of equal length, each padded.
#[derive(Debug, Clone)]
pub(crate) struct Side<'a> {
    pub(crate) b: Stored<'a>,
    pub(crate) depth: Range<usize>,
    pub(crate) n_segments: usize,
}

impl Side<'_> {
    /// K indices of a segment.
    fn segment(&self) -> usize {
        self.depth.len() / self.n_segments
    }

    fn n_pairs(&self) -> usize {
        self.n_segments * self.segment().next_multiple_of(STEP) / 2
    }
}

/// Calls `f` with room for `n` lines.
pub(crate) fn with_lines<T: Pod, R>(n: usize, f: impl FnOnce(&mut [T]) -> R) -> R {
    let n_floats = size_of::<T>() / size_of::<f32>();
    with_room((n + 1) * n_floats, |room| f(&mut pod_align_to_mut::<f32, T>(room).1[..n]))
}

/// Calls `f` with the K indices `depth` of a right side, packed.
pub(crate) fn with_panels<R>(b: Stored<'_>, depth: &Range<usize>, threads: Threads, f: impl FnOnce(Panels<'_>) -> R) -> R {
    with_each(&[Side { b, depth: depth.clone(), n_segments: 1 }], threads, |panels| f(panels[0]))
}

/// The same for several right sides.
pub(crate) fn with_each<R>(sides: &[Side<'_>], threads: Threads, f: impl FnOnce(&[Panels<'_>]) -> R) -> R {
    let n_lines = |side: &Side<'_>| side.b.n.div_ceil(WIDTH) * side.n_pairs();
    with_lines(sides.iter().map(n_lines).sum(), |mut rest: &mut [PairLine]| {
        let mut panels = Vec::with_capacity(sides.len());
        for side in sides {
            let (lines, others) = rest.split_at_mut(n_lines(side));
            rest = others;
            let (n, n_pairs, segment) = (side.b.n, side.n_pairs(), side.segment());
            let pack = |(p, panel): (usize, &mut [PairLine])| {
                for (s, panel) in panel.chunks_exact_mut(n_pairs / side.n_segments).enumerate() {
                    let start = side.depth.start + s * segment;
                    side.b.pack_panel(p * WIDTH, &(start..start + segment), panel);
                }
            };
            if threads == Threads::One || n * side.depth.len() < SERIAL_LEN {
                lines.chunks_exact_mut(n_pairs.max(1)).enumerate().for_each(pack);
            } else {
                lines.par_chunks_exact_mut(n_pairs).enumerate().for_each_on_team(pack);
            }
            panels.push(Panels { lines, n, n_pairs, first: 0 });
        }
        f(&panels)
    })
}

/// Calls `f` with the K indices `depth` of a left side, packed.
pub(crate) fn with_rows<R>(a: Stored<'_>, depth: &Range<usize>, threads: Threads, f: impl FnOnce(Lines<'_>) -> R) -> R {
    let padded = depth.len().next_multiple_of(STEP);
    let n_steps = padded / STEP;
    with_lines(a.n * n_steps, |steps: &mut [Step]| {
        let pack = |(i, steps): (usize, &mut [Step])| a.pack_rows(i * HEIGHT, depth, cast_slice_mut(steps));
        if threads == Threads::One || a.n * depth.len() < SERIAL_LEN {
            steps.chunks_mut(HEIGHT * n_steps).enumerate().for_each(pack);
        } else {
            steps.par_chunks_mut(HEIGHT * n_steps).enumerate().for_each_on_team(pack);
        }
        f(Lines::new(cast_slice(steps), padded, a.n, padded))
    })
}

impl Stored<'_> {
    /// The columns of a panel from `first` on.
    fn pack_panel(&self, first: usize, depth: &Range<usize>, panel: &mut [PairLine]) {
        let n = WIDTH.min(self.n - first);
        if n < WIDTH || depth.len() < 2 * panel.len() {
            panel.fill(PairLine::zeroed());
        }
        if self.k_is_outer {
            let lines = &self.data[depth.start * self.stride + first..];
            vectorised(
                #[inline(always)]
                || {
                    for (pair, PairLine(line)) in panel[..depth.len().div_ceil(2)].iter_mut().enumerate() {
                        let low = &lines[2 * pair * self.stride..];
                        let high = if 2 * pair + 1 < depth.len() { &lines[(2 * pair + 1) * self.stride..] } else { &[] };
                        interleave(low, high, &mut line[..n]);
                    }
                },
            );
        } else {
            let lines = &self.data[first * self.stride + depth.start..];
            let n_whole = depth.len() / 2;
            let y: &mut [f32] = cast_slice_mut(&mut panel[..n_whole]);
            if self.stride.is_multiple_of(2) {
                let pairs: &[[bf16; 2]] = lines.as_chunks().0;
                transpose_rows(cast_slice::<_, [u16; 2]>(pairs), self.stride / 2, n, WIDTH, y);
            } else {
                for (pair, line) in y.chunks_exact_mut(WIDTH).enumerate() {
                    for (col, y) in line[..n].iter_mut().enumerate() {
                        let at = col * self.stride + 2 * pair;
                        *y = [lines[at].to_bits(), lines[at + 1].to_bits()].word();
                    }
                }
            }
            if depth.len() > 2 * n_whole {
                for (col, word) in panel[n_whole].0[..n].iter_mut().enumerate() {
                    *word = u32::from(lines[col * self.stride + 2 * n_whole].to_bits());
                }
            }
        }
    }

    /// Rows from `first` on, each `[depth, padded]`.
    fn pack_rows(&self, first: usize, depth: &Range<usize>, rows: &mut [bf16]) {
        let padded = depth.len().next_multiple_of(STEP);
        if !self.k_is_outer {
            for (i, row) in rows.chunks_exact_mut(padded).enumerate() {
                let (inside, padding) = row.split_at_mut(depth.len());
                inside.copy_from_slice(&self.data[(first + i) * self.stride + depth.start..][..depth.len()]);
                padding.fill(bf16::ZERO);
            }
            return;
        }
        // Pairs of some K indices of these rows are interleaved, then transposed.
        let n = rows.len() / padded;
        let n_pairs = padded / 2;
        let words: &mut [f32] = cast_slice_mut(rows);
        let mut pairs = [[0_u32; HEIGHT]; STEP / 2];
        for at in (0..n_pairs).step_by(pairs.len()) {
            let lines = &self.data[first + depth.start * self.stride..];
            vectorised(
                #[inline(always)]
                || {
                    for (i, line) in pairs.iter_mut().enumerate() {
                        let k = 2 * (at + i);
                        let low = if k < depth.len() { &lines[k * self.stride..] } else { &[] };
                        let high = if k + 1 < depth.len() { &lines[(k + 1) * self.stride..] } else { &[] };
                        interleave(low, high, &mut line[..n]);
                    }
                },
            );
            let pairs: &[[f32; HEIGHT]] = cast_slice(&pairs);
            transpose_rows(pairs.as_flattened(), HEIGHT, STEP / 2, n_pairs, &mut words[at..]);
        }
    }
}

/// `words[i] = (low[i], high[i])`; 0 for a line that is empty.
#[inline(always)]
fn interleave(low: &[bf16], high: &[bf16], words: &mut [u32]) {
    let n = words.len();
    match (low.is_empty(), high.is_empty()) {
        (false, false) => {
            for ((word, low), high) in words.iter_mut().zip(&low[..n]).zip(&high[..n]) {
                *word = u32::from(low.to_bits()) | u32::from(high.to_bits()) << 16;
            }
        }
        (false, true) => words.iter_mut().zip(&low[..n]).for_each(|(word, low)| *word = u32::from(low.to_bits())),
        (true, _) => words.fill(0),
    }
}

/// Columns that are computed for `n_cols` of a panel: half of them, or all.
fn vectors(n_cols: usize) -> usize {
    n_cols.next_multiple_of(LANES)
}

impl Panels<'_> {
    /// Without the first `n` pairs of K indices.
    pub(crate) fn after(self, n: usize) -> Self {
        Self { first: self.first + n, ..self }
    }

    /// `y = a b` on this thread, or `y += a b`, for `y: [n_rows, n]` whose rows are contiguous.
    ///
    /// # Panics
    /// If `a` has more K indices than were packed, or `y` another length.
    pub(crate) fn times(self, instructions: Bf16Instructions, a: Lines<'_>, y: &mut [f32], onto: Onto) {
        assert_eq!(y.len(), a.n_rows * self.n, "results of {} rows and {} columns", a.n_rows, self.n);
        self.times_into(instructions, a, a.n_rows, (y, self.n), onto);
    }

    /// The same for the first `n_rows` rows of `a`, into a part of each row of a larger matrix, whose rows are `stride` apart.
    pub(crate) fn times_into(
        self,
        instructions: Bf16Instructions,
        a: Lines<'_>,
        n_rows: usize,
        (y, stride): (&mut [f32], usize),
        onto: Onto,
    ) {
        let Self { n, n_pairs, .. } = self;
        assert_eq!(a.n_segments, 1, "segments, whose edges would have to be copied");
        let registers = instructions.registers();
        let padded = a.depth.next_multiple_of(STEP);
        with_lines(HEIGHT * padded / STEP, |room: &mut [Step]| {
            let room: &mut [bf16] = cast_slice_mut(room);
            let mut edge = [[0.0; WIDTH]; HEIGHT];
            for row in (0..n_rows).step_by(HEIGHT) {
                let rows = a.rows(row, HEIGHT);
                let rows = rows.whole(instructions, room);
                for start in (0..rows.depth).step_by(DEPTH) {
                    let rows = rows.at(start, DEPTH);
                    let adds = onto == Onto::Sum || start > 0;
                    for (first, panel) in (0..n).step_by(WIDTH).zip(self.lines.chunks_exact(n_pairs)) {
                        let n_rows = HEIGHT.min(n_rows - row);
                        let wanted = WIDTH.min(n - first);
                        let n_cols = vectors(wanted);
                        let panel = &panel[self.first + start / 2..];
                        let y = &mut y[row * stride + first..];
                        if n_rows == rows.n_rows && n_cols == wanted {
                            instructions.multiply(&registers, rows, panel, Sums { data: y, stride, n_cols }, adds);
                            continue;
                        }
                        if adds {
                            for (line, y) in edge.iter_mut().zip(y.chunks(stride)).take(n_rows) {
                                line[..wanted].copy_from_slice(&y[..wanted]);
                            }
                        }
                        let sums = Sums { data: edge.as_flattened_mut(), stride: WIDTH, n_cols };
                        instructions.multiply(&registers, rows, panel, sums, adds);
                        for (line, y) in edge.iter().zip(y.chunks_mut(stride)).take(n_rows) {
                            y[..wanted].copy_from_slice(&line[..wanted]);
                        }
                    }
                }
            }
        });
    }

    /// `a b` on this thread in blocks, which `each` receives with their first row and column. Where rows of `a` end within a block, there must be data for the rest of the block, too.
    pub(crate) fn each_block(
        self,
        instructions: Bf16Instructions,
        a: Lines<'_>,
        mut each: impl FnMut(usize, usize, &[[f32; WIDTH]; HEIGHT]),
    ) {
        let registers = instructions.registers();
        let mut block = [[0.0; WIDTH]; HEIGHT];
        for row in (0..a.n_rows).step_by(HEIGHT) {
            let rows = Lines { data: &a.data[row * a.stride..], n_rows: HEIGHT, ..a };
            for (first, panel) in (0..self.n).step_by(WIDTH).zip(self.lines.chunks_exact(self.n_pairs)) {
                let sums = Sums { data: block.as_flattened_mut(), stride: WIDTH, n_cols: vectors(WIDTH.min(self.n - first)) };
                instructions.multiply(&registers, rows, &panel[self.first..], sums, false);
                each(row, first, &block);
            }
        }
    }
}

impl<'a> Lines<'a> {
    /// These rows, or a copy of them in `room` that has as many rows and K indices as `instructions` needs, padded with 0.
    fn whole<'b>(self, instructions: Bf16Instructions, room: &'b mut [bf16]) -> Lines<'b>
    where
        'a: 'b,
    {
        let is_high = instructions == Bf16Instructions::Avx512 || [LANES, HEIGHT].contains(&self.n_rows);
        if is_high && self.depth.is_multiple_of(instructions.depth()) {
            return self;
        }
        let padded = self.depth.next_multiple_of(STEP);
        let (rows, padding) = room[..HEIGHT * padded].split_at_mut(self.n_rows * padded);
        for (row, from) in rows.chunks_exact_mut(padded).zip(self.data.chunks(self.stride)) {
            let (inside, padding) = row.split_at_mut(self.depth);
            inside.copy_from_slice(&from[..self.depth]);
            padding.fill(bf16::ZERO);
        }
        padding.fill(bf16::ZERO);
        let n_rows = if instructions == Bf16Instructions::Avx512 { self.n_rows } else { self.n_rows.next_multiple_of(LANES) };
        Lines::new(room, padded, n_rows, padded)
    }

    /// K indices from `start` on, at most `n` of them.
    fn at(self, start: usize, n: usize) -> Self {
        Self { data: &self.data[start..], depth: n.min(self.depth - start), ..self }
    }
}

#[cfg(test)]
mod tests;
