//! Matrix products over floats stored in 16 bits. Operands are widened a block at a time, directly before they are multiplied;
//! results are rounded while they are in cache.

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use super::epilogue_cpu::Finish;
use super::matmul_cpu::{SERIAL_WORK, tiles};
use super::matmul_vector_cpu::{matrix_times_column, row_times_matrix, scale_row};
use crate::cpu::blocks::{Threads, each_chunk};
use crate::cpu::room::{in_f32, with_room};
use crate::cpu::transpose::transpose_into;
use crate::gemm::bf16::{Bf16Instructions, HEIGHT, Lines, STEP};
use crate::gemm::gemm::{self, Onto, Operand, product};
use crate::gemm::pairs::{Stored, with_panels, with_rows};
use crate::gemm::split::Paired;
use crate::gemm::transpose::Transpose;
use crate::kernel::floats::{Floats, of_any_type};
use crate::product::matmul::{Matmul, Reads};
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

/// The minimum number of bands of rows into which a result is divided, if it has enough rows.
const N_BANDS: usize = 16;
/// The rows of a band.
const MIN_BAND_ROWS: usize = 64;
const MAX_BAND_ROWS: usize = 256;
/// The number of floats of a band's operand and results together, or of the panels of both operands, to fit a core's cache.
const BLOCK_LEN: usize = 256 * 1024;
/// The number of sums that are ended and rounded at a time, so that they are still in the first-level cache.
const SUMS_LEN: usize = 8 * 1024;
/// The maximum number of rows of a panel.
const MAX_DEPTH: usize = 512;

/// One product, whose result has the rows from `first_row` on.
pub(crate) fn run<Y: Element>(kernel: &Matmul, reads: Reads<'_>, finish: &Finish, first_row: usize, y: &mut [Y]) {
    let Matmul { m, n, k, transpose, .. } = *kernel;
    let Reads { a, b, fused } = reads;
    let ending = Ending { finish, first_row, n, operand: fused };
    // A matrix with one row or column has the same memory layout as its transpose.
    let transposes_a = transpose.a() && m > 1 && k > 1;
    let transposes_b = transpose.b() && n > 1 && k > 1;
    if m > 1 && n > 1 && k > 1 && m * n * k >= MIN_PAIRS_WORK {
        let layout = Layout { sizes: [m, n, k], a_is_outer: transposes_a, b_is_outer: !transposes_b };
        let is_done = match (a, b, Bf16Instructions::detect()) {
            (Floats::Bf16(a), Floats::Bf16(b), Some(instructions)) => by_pairs(instructions, layout, a, b, &ending, y),
            // What is left out changes results that are rounded to 16 bits less than the rounding.
            (Floats::F16(a), Floats::F16(b), Some(Bf16Instructions::Amx)) if size_of::<Y>() == size_of::<u16>() => {
                m.min(n).min(k) >= MIN_SPLIT_LEN && by_pairs(Bf16Instructions::Amx, layout, a, b, &ending, y)
            }
            _ => false,
        };
        if is_done {
            return;
        }
    }
    if transposes_a || (m == 1 && k > 1 && !transposes_b) {
        return with_room(if transposes_b { k * n } else { 0 }, |room| {
            let b = if transposes_b {
                b.transpose_to(n, k, room);
                Floats::F32(room)
            } else {
                b
            };
            in_f32(y, |y| {
                sum_over_rows([m, n, k], a, b, y);
                ending.apply(0, y);
            });
        });
    }
    with_room(b.n_room(k * n), |room| {
        let b = b.get_in_parallel(0..k * n, room);
        if n == 1 && k > 1 {
            return each_band([m, n, k], a, &ending, y, |a, y| matrix_times_column(a, b, y));
        }
        let b = Operand::right(b, [k, n], Transpose::of(false, transposes_b));
        if k == 1 {
            return each_band([m, n, k], a, &ending, y, |a, y| scale_rows(a, b.data, y));
        }
        gemm::with_panels(b, |panels| {
            each_band([m, n, k], a, &ending, y, |a, y| {
                let a = Operand { data: a, n_rows: y.len() / n, n_cols: k, row_stride: k, col_stride: 1 };
                panels.times(a, 0..k, y, Onto::Nothing);
            });
        });
    });
}

/// Multiply-adds below which a product in f32 takes less time than one by matrix instructions.
const MIN_PAIRS_WORK: usize = 16 * 1024;
/// The number of elements of both operands of a sum over rows that are packed at a time, so that they fit a core's cache.
const PAIRS_LEN: usize = 512 * 1024;

/// The size of a side below which splitting the operands of a product in f16 takes longer than it saves.
const MIN_SPLIT_LEN: usize = 64;

/// The sizes of a product, and which of its operands have K as their outer index.
#[derive(Debug, Clone, Copy)]
struct Layout {
    sizes: [usize; 3],
    a_is_outer: bool,
    b_is_outer: bool,
}

/// `y = a b` by matrix instructions for bf16. Returns false, with `y` unspecified, for values that they would multiply wrongly.
fn by_pairs<T: Paired, Y: Element>(
    instructions: Bf16Instructions,
    layout: Layout,
    a: &[T],
    b: &[T],
    ending: &Ending<'_>,
    y: &mut [Y],
) -> bool {
    let Layout { sizes: [m, n, k], a_is_outer, b_is_outer } = layout;
    let a = Stored { data: a, n: m, stride: if a_is_outer { m } else { k }, k_is_outer: a_is_outer };
    let b = Stored { data: b, n, stride: if b_is_outer { n } else { k }, k_is_outer: b_is_outer };
    let is_finite = AtomicBool::new(true);
    if a_is_outer && b_is_outer && n < m && instructions == Bf16Instructions::Amx {
        // A left side is transposed when it is packed, a right one is not: of two such, the longer one becomes the right one.
        in_f32(y, |y| {
            with_room(m * n, |transposed| {
                sum_pairs(instructions, [n, m, k], b, a, &is_finite, transposed);
                transpose_into(transposed, n, m, y);
            });
            ending.apply(0, y);
        });
    } else if a_is_outer {
        in_f32(y, |y| {
            sum_pairs(instructions, [m, n, k], a, b, &is_finite, y);
            ending.apply(0, y);
        });
    } else {
        T::with_parts(b, 0..k, Threads::All, &is_finite, |b, depth| {
            with_panels(b, &depth, Threads::All, |panels| {
                each_band_of(band_rows([m, n, k]).next_multiple_of(HEIGHT), [m, n, k], y, |rows, y| {
                    // Few rows at a time, as above.
                    for (row, y) in rows.step_by(HEIGHT).zip(y.chunks_mut(HEIGHT * n)) {
                        let a = Stored { data: &a.data[row * a.stride..], n: y.len() / n, ..a };
                        in_f32(y, |y| {
                            T::with_parts(a, 0..k, Threads::One, &is_finite, |a, depth| {
                                let a = Lines::new(a.data, a.stride, a.n, depth.len());
                                T::times(instructions, (a, panels), depth.len() / T::N_PARTS, y, Onto::Nothing);
                            });
                            ending.apply(row, y);
                        });
                    }
                });
            });
        });
    }
    is_finite.into_inner()
}

/// `y = a b`, of which some K indices are packed at a time.
fn sum_pairs<T: Paired>(
    instructions: Bf16Instructions,
    [m, n, k]: [usize; 3],
    a: Stored<'_, T>,
    b: Stored<'_, T>,
    is_finite: &AtomicBool,
    y: &mut [f32],
) {
    let depth = (PAIRS_LEN / (T::N_PARTS * (m + n))).max(1).next_multiple_of(STEP).clamp(4 * STEP, 64 * STEP);
    for start in (0..k).step_by(depth) {
        let depth = start..(start + depth).min(k);
        let onto = if start == 0 { Onto::Nothing } else { Onto::Sum };
        T::with_parts(b, depth.clone(), Threads::All, is_finite, |b, of_b| {
            T::with_parts(a, depth, Threads::All, is_finite, |a, of_a| {
                with_panels(b, &of_b, Threads::All, |b| {
                    with_rows(instructions, a, &of_a, Threads::All, |a| {
                        each_band_of(HEIGHT, [m, n, of_a.len()], y, |rows, y| {
                            T::times(instructions, (a.rows(rows.start, HEIGHT), b), of_a.len() / T::N_PARTS, y, onto);
                        });
                    });
                });
            });
        });
    }
}

/// The operation on products before they are stored.
pub(crate) struct Ending<'a> {
    pub(crate) finish: &'a Finish,
    /// The first row of the results, in those that the epilogue numbers.
    pub(crate) first_row: usize,
    /// Columns of the result.
    pub(crate) n: usize,
    /// The further argument; empty if there is none.
    pub(crate) operand: Floats<'a>,
}

impl Ending<'_> {
    /// Applies the epilogue to `sums`, whole rows starting at `first`.
    pub(crate) fn apply(&self, first: usize, sums: &mut [f32]) {
        let first = self.first_row + first;
        let range = self.finish.operand_range(self.n, first, 0, sums.len());
        with_room(self.operand.n_room(range.len()), |room| {
            let operand = self.operand.get(range, room);
            vectorised(inlined!(|| self.finish.run(operand, first * self.n, sums)));
        });
    }
}

/// Rows of `y`, and the part of `a` that is widened for them.
fn band_rows([m, n, k]: [usize; 3]) -> usize {
    if m * n * k < SERIAL_WORK {
        return m;
    }
    let in_cache = (BLOCK_LEN / (n + k)).clamp(16, MAX_BAND_ROWS);
    m.div_ceil(N_BANDS).max(MIN_BAND_ROWS).min(in_cache).next_multiple_of(12)
}

/// Computes `y: [m, n]` in bands of rows, by `times` of the same rows of `a: [m, k]`, and ends it.
fn each_band<Y: Element>(
    sizes: [usize; 3],
    a: Floats<'_>,
    ending: &Ending<'_>,
    y: &mut [Y],
    times: impl Fn(&[f32], &mut [f32]) + Sync,
) {
    let [_, n, k] = sizes;
    // Of a single column, the operand is the larger part.
    let n_rows = (SUMS_LEN / if n == 1 { k } else { n }).max(1).next_multiple_of(12);
    each_band_of(band_rows(sizes), sizes, y, |rows, y| {
        for (row, y) in rows.step_by(n_rows).zip(y.chunks_mut(n_rows * n)) {
            in_f32(y, |y| {
                let range = row * k..row * k + y.len() / n * k;
                with_room(a.n_room(range.len()), |room| times(a.get(range, room), y));
                ending.apply(row, y);
            });
        }
    });
}

/// Calls `f` with bands of `n_rows` rows of `y: [m, n]`, on several threads if there is enough work.
fn each_band_of<Y: Element>(n_rows: usize, [m, n, k]: [usize; 3], y: &mut [Y], f: impl Fn(Range<usize>, &mut [Y]) + Sync) {
    let threads = if n_rows >= m { Threads::One } else { Threads::for_work(m * n * k, SERIAL_WORK) };
    each_chunk(threads, n_rows * n, y, |i, y| f(i * n_rows..i * n_rows + y.len() / n, y));
}

/// `y[row, ..] = a[row] b`.
fn scale_rows(a: &[f32], b: &[f32], y: &mut [f32]) {
    vectorised(inlined!(|| {
        for (y, &a) in y.chunks_exact_mut(b.len()).zip(a) {
            scale_row(a, b, y);
        }
    }));
}

/// `y = aᵀ b` for `a: [k, m]`, `b: [k, n]`: the gradient of weights. Both are read once.
fn sum_over_rows([m, n, k]: [usize; 3], a: Floats<'_>, b: Floats<'_>, y: &mut [f32]) {
    if m == 1 || n == 1 {
        let (column, matrix) = if m == 1 { (a, b) } else { (b, a) };
        return with_room(column.n_room(k), |room| {
            let column = column.get(0..k, room);
            of_any_type!(Floats, matrix, matrix => row_times_matrix(column, matrix, y));
        });
    }
    let tiles = tiles(m, n, k);
    let depth = (BLOCK_LEN / (m + n)).clamp(16, MAX_DEPTH).min(k);
    with_room(a.n_room(depth * m) + b.n_room(depth * n), |room| {
        let (a_room, b_room) = room.split_at_mut(a.n_room(depth * m));
        for start in (0..k).step_by(depth) {
            let rows = start..(start + depth).min(k);
            let a = panel(a, m, rows.clone(), a_room);
            let b = panel(b, n, rows.clone(), b_room);
            let a = Operand { data: a, n_rows: m, n_cols: rows.len(), row_stride: 1, col_stride: m };
            let b = Operand { data: b, n_rows: rows.len(), n_cols: n, row_stride: n, col_stride: 1 };
            let onto = if start == 0 { Onto::Nothing } else { Onto::Sum };
            product(onto, a, (b, None), y, &tiles, std::slice::from_ref(&(0..rows.len())), |_, _, _| {});
        }
    });
}

/// Rows of a matrix of `n_cols` columns.
fn panel<'b, 'a: 'b>(x: Floats<'a>, n_cols: usize, rows: Range<usize>, room: &'b mut [f32]) -> &'b [f32] {
    x.get_in_parallel(rows.start * n_cols..rows.end * n_cols, &mut room[..x.n_room(rows.len() * n_cols)])
}
