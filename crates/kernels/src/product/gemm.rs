//! The matrix product of the `gemm` crate, over tiles of a row-major result. The only file of this crate that uses `unsafe` for computation.
#![expect(unsafe_code, reason = "`gemm` takes raw pointers, and tiles of one matrix are written by several threads")]

use std::ops::Range;

use gemm_common::Parallelism;
use rayon::prelude::*;

use crate::core::vectorised::vectorised;
use crate::{OnTeam, Transpose};

/// A matrix operand with strides: element `(row, col)` is `data[row * row_stride + col * col_stride]`.
#[derive(Clone, Copy)]
pub(crate) struct Operand<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) n_rows: usize,
    pub(crate) n_cols: usize,
    pub(crate) row_stride: usize,
    pub(crate) col_stride: usize,
}

impl<'a> Operand<'a> {
    /// The right side `[k, n]` of a product, which is stored as `[n, k]` if it is transposed.
    pub(crate) const fn right(data: &'a [f32], [k, n]: [usize; 2], transpose: Transpose) -> Self {
        let (row_stride, col_stride) = if transpose.b() { (1, k) } else { (n, 1) };
        Self { data, n_rows: k, n_cols: n, row_stride, col_stride }
    }

    fn assert_in_bounds(&self) {
        let last = (self.n_rows - 1) * self.row_stride + (self.n_cols - 1) * self.col_stride;
        assert!(
            last < self.data.len(),
            "a {} x {} operand reaches past its {} elements",
            self.n_rows,
            self.n_cols,
            self.data.len()
        );
    }
}

/// One tile of the result: its rows and columns.
pub(crate) type Tile = (Range<usize>, Range<usize>);

/// `y = a b` for `y: [m, n]` row-major: computes all tiles for each of `depths`, ranges of `k`, in order. After the last,
/// `finish(row, cols, y[row, cols])` is called for the rows of a tile while they are in cache.
///
/// # Panics
/// If the operands do not fit `y`, the tiles overlap or reach beyond it, or the depths do not partition `k`.
pub(crate) fn product(
    a: Operand<'_>,
    b: Operand<'_>,
    y: &mut [f32],
    tiles: &[Tile],
    depths: &[Range<usize>],
    finish: impl Fn(usize, Range<usize>, &mut [f32]) + Sync,
) {
    product_onto(Onto::Nothing, a, b, y, tiles, depths, finish);
}

/// The same; overwrites `y` or adds to it.
pub(crate) fn product_onto(
    onto: Onto,
    a: Operand<'_>,
    b: Operand<'_>,
    y: &mut [f32],
    tiles: &[Tile],
    depths: &[Range<usize>],
    finish: impl Fn(usize, Range<usize>, &mut [f32]) + Sync,
) {
    let (m, n, k) = (a.n_rows, b.n_cols, a.n_cols);
    assert!(b.n_rows == k && y.len() == m * n, "operands of {m} x {k} and {} x {n} for {} results", b.n_rows, y.len());
    a.assert_in_bounds();
    b.assert_in_bounds();
    assert_disjoint(tiles, m, n);
    assert_cut(depths, k);
    let y = Shared(y.as_mut_ptr());
    let run = |depth: &Range<usize>, (rows, cols): &Tile| {
        // SAFETY: the tile lies within `y` and overlaps no other (`assert_disjoint`), so only this thread accesses these
        // elements; the operands cover `[m, k]` and `[k, n]` (`assert_in_bounds`), the depth is part of `k` (`assert_cut`), and the
        // operands are not written.
        unsafe { multiply(a, b, y, n, (rows, cols), depth, if depth.start == 0 { onto } else { Onto::Sum }) };
        if depth.end < k {
            return;
        }
        vectorised(
            #[inline(always)]
            || {
                for row in rows.clone() {
                    // SAFETY: as above; one row of the tile is contiguous, and its product is complete.
                    let line = unsafe { std::slice::from_raw_parts_mut(y.at(row * n + cols.start), cols.len()) };
                    finish(row, cols.clone(), line);
                }
            },
        );
    };
    for depth in depths {
        match tiles {
            [tile] => run(depth, tile),
            tiles => tiles.par_iter().with_max_len(1).for_each_on_team(|tile| run(depth, tile)),
        }
    }
}

/// What a product does with the previous values of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onto {
    /// Overwrites them.
    Nothing,
    /// Adds to them.
    Sum,
}

/// `y = a b` for `y: [m, n]` row-major, or `y += a b`, on this thread.
///
/// # Panics
/// If the operands do not fit `y`, or one has no elements.
pub(crate) fn serial_product(a: Operand<'_>, b: Operand<'_>, y: &mut [f32], onto: Onto) {
    let (m, n, k) = (a.n_rows, b.n_cols, a.n_cols);
    assert!(b.n_rows == k && y.len() == m * n, "operands of {m} x {k} and {} x {n} for {} results", b.n_rows, y.len());
    a.assert_in_bounds();
    b.assert_in_bounds();
    // SAFETY: the one tile is all of `y`, which is borrowed; the operands cover `[m, k]` and `[k, n]` (`assert_in_bounds`).
    unsafe { multiply(a, b, Shared(y.as_mut_ptr()), n, (&(0..m), &(0..n)), &(0..k), onto) };
}

/// A pointer into the result, shared by the threads that write disjoint tiles of it.
#[derive(Clone, Copy)]
struct Shared(*mut f32);

// SAFETY: only `product` shares one, and hands each thread tiles that no other thread has.
unsafe impl Send for Shared {}
// SAFETY: as above.
unsafe impl Sync for Shared {}

impl Shared {
    /// # Safety
    /// `index` must be within the matrix that this points into.
    unsafe fn at(self, index: usize) -> *mut f32 {
        // SAFETY: guaranteed by the caller.
        unsafe { self.0.add(index) }
    }
}

/// The product over `depth`, written to the tile or added to it.
///
/// # Safety
/// The tile must be within the `n`-column matrix at `y` and no other thread may access it meanwhile; `depth` must be within the operands.
unsafe fn multiply(
    a: Operand<'_>,
    b: Operand<'_>,
    y: Shared,
    n: usize,
    (rows, cols): (&Range<usize>, &Range<usize>),
    depth: &Range<usize>,
    onto: Onto,
) {
    // SAFETY: guaranteed by the caller; these are elements that exist.
    let (dst, a_data, b_data) = unsafe {
        (
            y.at(rows.start * n + cols.start),
            a.data.as_ptr().add(rows.start * a.row_stride + depth.start * a.col_stride),
            b.data.as_ptr().add(cols.start * b.col_stride + depth.start * b.row_stride),
        )
    };
    let a = Side { len: rows.len(), data: a_data, stride: a.row_stride, k_stride: a.col_stride, y_stride: n };
    let b = Side { len: cols.len(), data: b_data, stride: b.col_stride, k_stride: b.row_stride, y_stride: 1 };
    // `gemm` packs the left side and reads the right side where it lies. As `yᵀ = bᵀ aᵀ` the result is column-major, which is the layout that the
    // micro-kernels store. Packing a transposed `b` costs more than that gains.
    let (lhs, rhs) = if b.k_stride == 1 && b.len > 1 { (a, b) } else { (b, a) };
    // SAFETY: guaranteed by the caller; lengths and strides are those of the operands and of `y`.
    unsafe {
        gemm_f32::gemm::f32::get_gemm_fn()(
            lhs.len,
            rhs.len,
            depth.len(),
            dst,
            rhs.y_stride as isize,
            lhs.y_stride as isize,
            onto == Onto::Sum,
            lhs.data,
            lhs.k_stride as isize,
            lhs.stride as isize,
            rhs.data,
            rhs.stride as isize,
            rhs.k_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Rows of `a` or columns of `b`.
struct Side {
    len: usize,
    data: *const f32,
    /// From one of them to the next, along K, and from one's results to the next's.
    stride: usize,
    k_stride: usize,
    y_stride: usize,
}

fn assert_cut(depths: &[Range<usize>], k: usize) {
    let mut end = 0;
    for depth in depths {
        assert!(depth.start == end && !depth.is_empty(), "depth {depth:?} does not start at {end}");
        end = depth.end;
    }
    assert!(end == k, "depths reach {end} of {k}");
}

/// Tiles come from a grid, row by row: each starts where a previous one ended.
fn assert_disjoint(tiles: &[Tile], m: usize, n: usize) {
    let area: usize = tiles.iter().map(|(rows, cols)| rows.len() * cols.len()).sum();
    assert!(area == m * n, "tiles cover {area} of {} elements", m * n);
    for (i, (rows, cols)) in tiles.iter().enumerate() {
        assert!(rows.end <= m && cols.end <= n && !rows.is_empty() && !cols.is_empty(), "tile {rows:?} x {cols:?} is outside");
        for (other_rows, other_cols) in &tiles[..i] {
            let apart = rows.start >= other_rows.end
                || other_rows.start >= rows.end
                || cols.start >= other_cols.end
                || other_cols.start >= cols.end;
            assert!(apart, "tiles {rows:?} x {cols:?} and {other_rows:?} x {other_cols:?} overlap");
        }
    }
}
