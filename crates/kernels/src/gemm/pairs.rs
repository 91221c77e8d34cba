//! Matrix products of operands in bf16, by [matrix instructions](super::bf16), with sums in f32.
//!
//! The right side is packed in panels of 32 columns, each with its elements in pairs along K, one line a pair. The rows of the
//! left side are read where they lie if contiguous along K and whole, else packed, too. Operands are padded with 0.
//!
//! Operands whose outer index is K are packed tile by tile along K, so that their rows are read whole and in order, as the
//! processor fetches them ahead.

use std::ops::Range;

use bytemuck::{Pod, Zeroable, cast_slice, cast_slice_mut, pod_align_to_mut};
use half::bf16;

use super::bf16::{Bf16Instructions, HEIGHT, LANES, Lines, PairLine, Panel, STEP, Step, Sums, TILE_LINES, WIDTH};
use crate::cpu::blocks::{Threads, each_chunk};
use crate::cpu::room::with_room;
use crate::cpu::transpose::{Word, transpose_rows};
use crate::gemm::gemm::Onto;
use crate::vectorised::{inlined, vectorised};

/// K indices that are multiplied at a time, so that the rows of a block and a panel stay in the first-level cache.
pub(crate) const DEPTH: usize = 512;
/// Elements below which packing on other threads takes longer than packing on one.
const SERIAL_LEN: usize = 64 * 1024;

/// A matrix, in bf16 unless said otherwise, of which element `(i, k)` is `data[i * stride + k]`, or `data[i + k * stride]` if `k`
/// is the outer index.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored<'a, T = bf16> {
    pub(crate) data: &'a [T],
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
    /// From one panel to the next.
    panel_stride: usize,
    /// From one tile of a panel to the next.
    tile_stride: usize,
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

/// Calls `f` with the K indices `depth` of a right side, packed tile by tile.
pub(crate) fn with_panels<R>(b: Stored<'_>, depth: &Range<usize>, threads: Threads, f: impl FnOnce(Panels<'_>) -> R) -> R {
    let n_lines = b.n.div_ceil(WIDTH) * TILE_LINES;
    with_lines(depth.len().div_ceil(STEP) * n_lines, |lines: &mut [PairLine]| {
        each_step(depth, threads, b.n, lines, n_lines, |step, lines| b.pack_tiles(&step, lines));
        f(Panels { lines, n: b.n, panel_stride: TILE_LINES, tile_stride: n_lines, first: 0 })
    })
}

/// Calls `pack` with each step of K indices, and the `len` elements for it, of an operand of `n` rows or columns.
fn each_step<T: Send>(
    depth: &Range<usize>,
    threads: Threads,
    n: usize,
    packed: &mut [T],
    len: usize,
    pack: impl Fn(Range<usize>, &mut [T]) + Sync,
) {
    let threads = threads.and(Threads::for_work(n * depth.len(), SERIAL_LEN));
    each_chunk(threads, len, packed, |i, packed| {
        let start = depth.start + i * STEP;
        pack(start..(start + STEP).min(depth.end), packed);
    });
}

/// Calls `f` with several right sides, packed panel by panel, so that products can begin at any pair of K indices.
pub(crate) fn with_each<R>(sides: &[Side<'_>], threads: Threads, f: impl FnOnce(&[Panels<'_>]) -> R) -> R {
    let n_lines = |side: &Side<'_>| side.b.n.div_ceil(WIDTH) * side.n_pairs();
    with_lines(sides.iter().map(n_lines).sum(), |mut rest: &mut [PairLine]| {
        let mut panels = Vec::with_capacity(sides.len());
        for side in sides {
            let (lines, others) = rest.split_at_mut(n_lines(side));
            rest = others;
            let (n, n_pairs, segment) = (side.b.n, side.n_pairs(), side.segment());
            let threads = threads.and(Threads::for_work(n * side.depth.len(), SERIAL_LEN));
            each_chunk(threads, n_pairs.max(1), &mut *lines, |p, panel| {
                for (s, panel) in panel.chunks_exact_mut(n_pairs / side.n_segments).enumerate() {
                    let start = side.depth.start + s * segment;
                    side.b.pack_panel(p * WIDTH, &(start..start + segment), panel);
                }
            });
            panels.push(Panels { lines, n, panel_stride: n_pairs, tile_stride: TILE_LINES, first: 0 });
        }
        f(&panels)
    })
}

/// Calls `f` with the K indices `depth` of a left side whose outer index is K, packed tile by tile; for AMX, with rows of 0 up to
/// a multiple of [`HEIGHT`].
pub(crate) fn with_rows<R>(
    instructions: Bf16Instructions,
    a: Stored<'_>,
    depth: &Range<usize>,
    threads: Threads,
    f: impl FnOnce(Lines<'_>) -> R,
) -> R {
    assert!(a.k_is_outer, "a left side whose rows are contiguous is read where it lies");
    if instructions == Bf16Instructions::Avx512 {
        return with_panels(a, depth, threads, |panels| f(panels.as_rows(depth.len())));
    }
    let (n_steps, n_bands) = (depth.len().div_ceil(STEP), a.n.div_ceil(HEIGHT));
    // An odd number of bands, since tiles of one a power of two apart would displace each other in the first-level cache.
    let len = (n_bands | 1) * HEIGHT;
    with_lines(n_steps * len, |steps: &mut [Step]| {
        each_step(depth, threads, a.n, steps, len, |step, steps| a.pack_bands(&step, &mut steps[..n_bands * HEIGHT]));
        f(Lines {
            data: cast_slice(steps),
            first_row: 0,
            stride: STEP,
            pair_stride: 2,
            n_rows: n_bands * HEIGHT,
            depth: STEP,
            n_segments: n_steps,
            segment_stride: len * STEP,
            band_rows: HEIGHT,
            band_stride: HEIGHT * STEP,
        })
    })
}

impl Stored<'_> {
    /// The columns of a panel from `first` on.
    fn pack_panel(&self, first: usize, depth: &Range<usize>, panel: &mut [PairLine]) {
        // Other columns of the panel keep what they have: they are multiplied, too, but their sums are not read.
        let n = WIDTH.min(self.n - first);
        panel[depth.len() / 2..].fill(PairLine::zeroed());
        if self.k_is_outer {
            let lines = &self.data[depth.start * self.stride + first..];
            vectorised(inlined!(|| {
                for (pair, PairLine(line)) in panel[..depth.len().div_ceil(2)].iter_mut().enumerate() {
                    let low = &lines[2 * pair * self.stride..];
                    let high = if 2 * pair + 1 < depth.len() { &lines[(2 * pair + 1) * self.stride..] } else { &[] };
                    if n == LANES {
                        interleave_half(low, high, &mut line[..n]);
                    } else {
                        interleave(low, high, &mut line[..n]);
                    }
                }
            }));
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

    /// One step of K indices of all columns: a tile of each panel after the other.
    fn pack_tiles(&self, step: &Range<usize>, lines: &mut [PairLine]) {
        if !self.k_is_outer {
            lines.chunks_exact_mut(TILE_LINES).enumerate().for_each(|(p, tile)| self.pack_panel(p * WIDTH, step, tile));
            return;
        }
        if step.len() < STEP {
            lines.fill(PairLine::zeroed());
        }
        vectorised(inlined!(|| {
            for pair in 0..step.len().div_ceil(2) {
                let [low, high] = self.pair(step, pair);
                if self.n == LANES {
                    interleave_half(low, high, &mut lines[pair].0[..LANES]);
                    continue;
                }
                for (p, first) in (0..self.n).step_by(WIDTH).enumerate() {
                    let line = &mut lines[p * TILE_LINES + pair].0[..WIDTH.min(self.n - first)];
                    interleave(&low[first..], high.get(first..).unwrap_or_default(), line);
                }
            }
        }));
    }

    /// One step of K indices of all rows: a tile of each band after the other, with 0 beyond the last row.
    fn pack_bands(&self, step: &Range<usize>, bands: &mut [Step]) {
        // Pairs of some rows are interleaved, then transposed.
        const N: usize = 8 * HEIGHT;
        let mut pairs = [[0_u32; N]; TILE_LINES];
        for (first, bands) in (0..self.n).step_by(N).zip(bands.chunks_mut(N)) {
            let n = N.min(self.n - first);
            vectorised(inlined!(|| {
                for (pair, line) in pairs.iter_mut().enumerate().take(step.len().div_ceil(2)) {
                    let [low, high] = self.pair(step, pair);
                    interleave(&low[first..], high.get(first..).unwrap_or_default(), &mut line[..n]);
                    line[n..].fill(0);
                }
            }));
            let pairs: &[[f32; N]] = cast_slice(&pairs);
            for (i, band) in bands.chunks_exact_mut(HEIGHT).enumerate() {
                transpose_rows(&pairs.as_flattened()[i * HEIGHT..], N, TILE_LINES, TILE_LINES, cast_slice_mut(band));
            }
        }
    }

    /// A pair of lines of a step; the second is empty if the first is the last one.
    #[inline(always)]
    fn pair(&self, step: &Range<usize>, pair: usize) -> [&[bf16]; 2] {
        let k = step.start + 2 * pair;
        let low = &self.data[k * self.stride..][..self.n];
        [low, if k + 1 < step.end { &self.data[(k + 1) * self.stride..][..self.n] } else { &[] }]
    }
}

/// `words[i] = (low[i], high[i])`; 0 for a line that is empty.
#[inline(always)]
fn interleave(low: &[bf16], high: &[bf16], words: &mut [u32]) {
    let n = words.len();
    match (low.is_empty(), high.is_empty()) {
        (false, false) => {
            // Halves of words next to each other are interleaved by shuffles, which widening them would not be.
            let halves = cast_slice_mut::<_, [bf16; 2]>(words);
            halves.iter_mut().zip(&low[..n]).zip(&high[..n]).for_each(|((pair, low), high)| *pair = [*low, *high]);
        }
        (false, true) => words.iter_mut().zip(&low[..n]).for_each(|(word, low)| *word = u32::from(low.to_bits())),
        (true, _) => words.fill(0),
    }
}

/// The same for half a panel: by the loop over any number of columns, gradients of weights of 16 channels took 1.1 times as long.
#[inline(always)]
fn interleave_half(low: &[bf16], high: &[bf16], words: &mut [u32]) {
    let [low_half, high_half] = [low, high].map(|line| line.first_chunk::<LANES>());
    match (words.first_chunk_mut::<LANES>(), low_half, high_half) {
        (Some(words), Some(low), Some(high)) => {
            *words = std::array::from_fn(|i| u32::from(low[i].to_bits()) | u32::from(high[i].to_bits()) << 16);
        }
        _ => interleave(low, high, words),
    }
}

/// Columns that are computed for `n_cols` of a panel: half of them, or all.
fn vectors(n_cols: usize) -> usize {
    n_cols.next_multiple_of(LANES)
}

impl<'a> Panels<'a> {
    /// Without the first `n` pairs of K indices.
    pub(crate) fn after(self, n: usize) -> Self {
        Self { first: self.first + n, ..self }
    }

    /// The lines of a panel from a pair of K indices on: the first pair of a tile, unless all are adjacent.
    fn panel(self, panel: usize, pair: usize) -> Panel<'a> {
        let at = self.first + pair;
        let start = panel * self.panel_stride + at / TILE_LINES * self.tile_stride + at % TILE_LINES;
        Panel { lines: &self.lines[start..], tile_stride: self.tile_stride }
    }

    /// Columns that were packed tile by tile, with `depth` K indices, as rows of a left side, one panel a band.
    fn as_rows(self, depth: usize) -> Lines<'a> {
        const LINE: usize = 2 * WIDTH;
        Lines {
            data: cast_slice(self.lines),
            first_row: 0,
            stride: 2,
            pair_stride: LINE,
            n_rows: self.n,
            depth: STEP,
            n_segments: depth.div_ceil(STEP),
            segment_stride: self.tile_stride * LINE,
            band_rows: WIDTH,
            band_stride: self.panel_stride * LINE,
        }
    }

    /// `y = a b` on this thread, or `y += a b`, for `y: [n_rows, n]` whose rows are contiguous.
    ///
    /// # Panics
    /// If `a` has more K indices than were packed, or fewer rows than `y`.
    pub(crate) fn times(self, instructions: Bf16Instructions, a: Lines<'_>, y: &mut [f32], onto: Onto) {
        let n_rows = y.len() / self.n;
        let fits = n_rows <= a.n_rows && y.len() == n_rows * self.n;
        assert!(fits, "{} results of {} rows and {} columns", y.len(), a.n_rows, self.n);
        self.times_into(instructions, a, n_rows, (y, self.n), onto);
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
        let n = self.n;
        let registers = instructions.registers();
        let padded = a.depth.next_multiple_of(STEP);
        with_lines(HEIGHT * padded / STEP, |room: &mut [Step]| {
            let room: &mut [bf16] = cast_slice_mut(room);
            let mut edge = [[0.0; WIDTH]; HEIGHT];
            for row in (0..n_rows).step_by(HEIGHT) {
                let n_rows = HEIGHT.min(n_rows - row);
                let rows = a.rows(row, instructions.rows(n_rows)).whole(instructions, room);
                // Segments that are not those of tiles are multiplied together.
                let depth = if [rows.len(), STEP].contains(&rows.depth) { DEPTH } else { rows.len() };
                for start in (0..rows.len()).step_by(depth) {
                    let rows = rows.at(start, depth);
                    let adds = onto == Onto::Sum || start > 0;
                    for first in (0..n).step_by(WIDTH) {
                        let wanted = WIDTH.min(n - first);
                        let n_cols = vectors(wanted);
                        let panel = self.panel(first / WIDTH, start / 2);
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

    /// `a b` on this thread in blocks, which `each` receives with their first row and column. Where rows of `a` end within a
    /// block, there must be data for the rest of the block, too.
    pub(crate) fn each_block(
        self,
        instructions: Bf16Instructions,
        a: Lines<'_>,
        mut each: impl FnMut(usize, usize, &[[f32; WIDTH]; HEIGHT]),
    ) {
        let registers = instructions.registers();
        let mut block = [[0.0; WIDTH]; HEIGHT];
        for row in (0..a.n_rows).step_by(HEIGHT) {
            let rows = Lines { n_rows: HEIGHT, ..a.rows(row, HEIGHT) };
            for first in (0..self.n).step_by(WIDTH) {
                let sums = Sums { data: block.as_flattened_mut(), stride: WIDTH, n_cols: vectors(WIDTH.min(self.n - first)) };
                instructions.multiply(&registers, rows, self.panel(first / WIDTH, 0), sums, false);
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
        if self.n_rows == instructions.rows(self.n_rows) && self.depth.is_multiple_of(instructions.depth()) {
            return self;
        }
        assert_eq!(self.n_segments, 1, "segments, whose edges would have to be copied");
        let padded = self.depth.next_multiple_of(STEP);
        let (rows, padding) = room[..HEIGHT * padded].split_at_mut(self.n_rows * padded);
        for (i, row) in rows.chunks_exact_mut(padded).enumerate() {
            let (inside, padding) = row.split_at_mut(self.depth);
            inside.copy_from_slice(&self.data[self.start(i)..][..self.depth]);
            padding.fill(bf16::ZERO);
        }
        padding.fill(bf16::ZERO);
        Lines::new(room, padded, instructions.rows(self.n_rows), padded)
    }

    /// K indices from `start` on, at most `n` of them: of several segments, whole ones.
    pub(super) fn at(self, start: usize, n: usize) -> Self {
        if self.n_segments == 1 {
            // Interleaved pairs are whole: they are padded with 0.
            let n = if self.pair_stride == 2 { n } else { n.next_multiple_of(2) };
            return Self { data: &self.data[start / 2 * self.pair_stride..], depth: n.min(self.depth - start), ..self };
        }
        let first = start / self.depth;
        let n_segments = n.div_ceil(self.depth).min(self.n_segments - first);
        Self { data: &self.data[first * self.segment_stride..], n_segments, ..self }
    }
}

#[cfg(test)]
mod tests;
