//! Matrix products over tiles of a row-major result. The only file of this crate that uses `unsafe` for computation.
//!
//! One side of a product, the right one, is packed: in panels as wide as two vectors, each with its elements in the order in
//! which they are multiplied. The other is read where it lies if its rows are contiguous, else packed, too. A block of a few rows
//! and one panel has all of its sums in registers. Goto & van de Geijn 2008, *Anatomy of high-performance matrix multiplication*.
#![expect(unsafe_code, reason = "tiles of one matrix are written by several threads")]

use std::array::from_fn;
use std::ops::Range;

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;

use crate::cpu::blocks::{Threads, cut, each_chunk};
use crate::cpu::room::with_room;
use crate::cpu::team::OnTeam;
use crate::cpu::transpose::transpose_rows;
use crate::gemm::transpose::Transpose;
use crate::vectorised::{inlined, vectorised};

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

/// The number of K indices that are summed at a time: so many that results are rarely stored and read again, and so few that six
/// rows of them, 19 KB, stay in the first-level cache.
pub(crate) const DEPTH: usize = 800;

/// One tile of the result: its rows and columns.
pub(crate) type Tile = (Range<usize>, Range<usize>);

/// What a product does with the previous values of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onto {
    /// Overwrites them.
    Nothing,
    /// Adds to them.
    Sum,
}

/// `y = a b` for `y: [m, n]` row-major, or `y += a b`: computes all tiles for each of `depths`, ranges of `k`, in order. After
/// the last, `finish(row, cols, y[row, cols])` is called for the rows of a tile while they are in cache. With a `b` that has been
/// [packed](pack) before, rows of `a` must be contiguous.
///
/// # Panics
/// If the operands do not fit `y`, the tiles overlap or reach beyond it, or the depths do not partition `k`.
pub(crate) fn product(
    onto: Onto,
    a: Operand<'_>,
    (b, packed): (Operand<'_>, Option<&[f32]>),
    y: &mut [f32],
    tiles: &[Tile],
    depths: &[Range<usize>],
    finish: impl Fn(usize, Range<usize>, &mut [f32]) + Sync,
) {
    let (m, n, k) = (a.n_rows, b.n_cols, a.n_cols);
    assert!(b.n_rows == k && y.len() == m * n, "operands of {m} x {k} and {} x {n} for {} results", b.n_rows, y.len());
    assert_disjoint(tiles, m, n);
    assert_cut(depths, k);
    let (y, sides) = (Shared(y.as_mut_ptr()), Sides::new(a, b));
    let panels = packed.map(|packed| Panels::of(b, packed));
    let threads = if tiles.len() == 1 { Threads::One } else { Threads::All };
    for depth in depths {
        let onto = if depth.start == 0 { onto } else { Onto::Sum };
        let last = (depth.end == k).then_some(&finish);
        // SAFETY: the tiles lie within `y` and do not overlap (`assert_disjoint`).
        let each_tile = |packed: Packed<'_>| unsafe { each_tile(&packed, y, n, tiles, onto, last) };
        match panels {
            Some(panels) => each_tile(panels.with_rows(a, depth.clone(), depth.start)),
            None => sides.with_packed(depth, threads, each_tile),
        }
    }
}

/// Computes all tiles of the matrix `y` of `n` columns, and finishes them.
///
/// # Safety
/// The tiles must be within the matrix at `y` and must not overlap, and no other code may access that matrix until this returns.
unsafe fn each_tile(
    packed: &Packed<'_>,
    y: Shared,
    n: usize,
    tiles: &[Tile],
    onto: Onto,
    finish: Option<&(impl Fn(usize, Range<usize>, &mut [f32]) + Sync)>,
) {
    let run = |(rows, cols): &Tile| {
        // SAFETY: no other thread has this tile.
        unsafe { packed.multiply(y, (rows, cols), onto) };
        let Some(finish) = finish else { return };
        vectorised(inlined!(|| {
            for row in rows.clone() {
                // SAFETY: as above; one row of the tile is contiguous, and its product is complete.
                let line = unsafe { std::slice::from_raw_parts_mut(y.at(row * n + cols.start), cols.len()) };
                finish(row, cols.clone(), line);
            }
        }));
    };
    match tiles {
        [tile] => run(tile),
        tiles => tiles.par_iter().with_max_len(1).for_each_on_team(run),
    }
}

/// A right side that is packed once for several products.
#[derive(Clone, Copy)]
pub(crate) struct Panels<'a> {
    panels: &'a [f32],
    right: Side<'a>,
    k: usize,
}

/// Packs `b` for the products of `f`.
///
/// # Panics
/// If `b` has no elements, or data for fewer.
pub(crate) fn with_panels<R>(b: Operand<'_>, f: impl FnOnce(Panels<'_>) -> R) -> R {
    with_room(packed_len([b.n_rows, b.n_cols]), |room| {
        pack(b, room);
        f(Panels::of(b, room))
    })
}

/// The number of floats of a packed right side `[k, n]`.
pub(crate) fn packed_len([k, n]: [usize; 2]) -> usize {
    n.next_multiple_of(block()[1]) * k
}

/// Packs a right side.
///
/// # Panics
/// If it has no elements, or data for fewer, or if `packed` has another length than [`packed_len`].
pub(crate) fn pack(b: Operand<'_>, packed: &mut [f32]) {
    b.assert_in_bounds();
    assert_eq!(packed.len(), packed_len([b.n_rows, b.n_cols]), "floats for a packed operand");
    Side::columns(b).pack(block()[1], &(0..b.n_rows), Threads::All, packed);
}

impl<'a> Panels<'a> {
    /// `b`, which has been packed into `panels`.
    ///
    /// # Panics
    /// If `panels` has another length than [`packed_len`].
    pub(crate) fn of(b: Operand<'a>, panels: &'a [f32]) -> Self {
        assert_eq!(panels.len(), packed_len([b.n_rows, b.n_cols]), "floats of a packed operand");
        Self { panels, right: Side::columns(b), k: b.n_rows }
    }

    /// The products of columns from `first` on of `a` with the rows `depth`.
    fn with_rows<'b>(self, a: Operand<'b>, depth: Range<usize>, first: usize) -> Packed<'b>
    where
        'a: 'b,
    {
        assert!(a.col_stride == 1, "the rows of the left side of a packed operand are contiguous, not {} apart", a.col_stride);
        let Self { panels, right, k } = self;
        let (rows, left) = (Rows::Lines(&a.data[first..], a.row_stride), Side::rows(a, right.len));
        Packed { rows, panels, n_packed: k, start: depth.start, depth: depth.len(), left, right, is_swapped: false }
    }

    /// `y = a b` on this thread, or `y += a b`, for the rows `depth` of the packed operand and rows of `a` that are contiguous.
    ///
    /// # Panics
    /// If the operands do not fit `y` or each other.
    pub(crate) fn times(self, a: Operand<'_>, depth: Range<usize>, y: &mut [f32], onto: Onto) {
        let Self { right, k, .. } = self;
        let (m, n) = (a.n_rows, right.len);
        let fits = a.n_cols == depth.len() && depth.end <= k && y.len() == m * n;
        assert!(fits, "operands of {m} x {} and {depth:?} of {k} x {n} for {} results", a.n_cols, y.len());
        a.assert_in_bounds();
        let y = Shared(y.as_mut_ptr());
        for part in cut(depth.len(), depth.len().div_ceil(DEPTH), 16) {
            let onto = if part.start == 0 { onto } else { Onto::Sum };
            let packed = self.with_rows(a, depth.start + part.start..depth.start + part.end, part.start);
            // SAFETY: the one tile is all of `y`, which is borrowed.
            unsafe { packed.multiply(y, (&(0..m), &(0..n)), onto) };
        }
    }
}

/// `y = a b` for `y: [m, n]` row-major, or `y += a b`, on this thread.
///
/// # Panics
/// If the operands do not fit `y`, or one has no elements.
pub(crate) fn serial_product(a: Operand<'_>, b: Operand<'_>, y: &mut [f32], onto: Onto) {
    product(onto, a, (b, None), y, &[(0..a.n_rows, 0..b.n_cols)], std::slice::from_ref(&(0..a.n_cols)), |_, _, _| {});
}

/// Rows of `a` or columns of `b`: element `(i, k)` is `data[i * stride + k * k_stride]`, and its results are `y_stride` apart.
#[derive(Clone, Copy)]
struct Side<'a> {
    data: &'a [f32],
    len: usize,
    stride: usize,
    k_stride: usize,
    y_stride: usize,
}

impl<'a> Side<'a> {
    /// Of `a`, for a result of `n` columns.
    const fn rows(a: Operand<'a>, n: usize) -> Self {
        Self { data: a.data, len: a.n_rows, stride: a.row_stride, k_stride: a.col_stride, y_stride: n }
    }

    /// Of `b`.
    const fn columns(b: Operand<'a>) -> Self {
        Self { data: b.data, len: b.n_cols, stride: b.col_stride, k_stride: b.row_stride, y_stride: 1 }
    }

    /// The floats that its panels of `width` take for `depth` products.
    const fn packed_len(&self, width: usize, depth: usize) -> usize {
        self.len.next_multiple_of(width) * depth
    }

    /// Packs it in panels: element `(i, k)` of panel `p` is at `k * width + i`, and 0 beyond the end.
    fn pack(&self, width: usize, depth: &Range<usize>, threads: Threads, panels: &mut [f32]) {
        let panel_len = width * depth.len();
        let pack = |p: usize, panel: &mut [f32]| {
            let first = p * width;
            let n = width.min(self.len - first);
            let data = &self.data[first * self.stride + depth.start * self.k_stride..];
            if n < width {
                panel.fill(0.0);
            }
            if self.stride == 1 {
                match width {
                    8 if n == width => copy_lines::<8>(data, self.k_stride, panel),
                    6 if n == width => copy_lines::<6>(data, self.k_stride, panel),
                    12 if n == width => copy_lines::<12>(data, self.k_stride, panel),
                    16 if n == width => copy_lines::<16>(data, self.k_stride, panel),
                    32 if n == width => copy_lines::<32>(data, self.k_stride, panel),
                    _ => {
                        for (k, line) in panel.chunks_exact_mut(width).enumerate() {
                            line[..n].copy_from_slice(&data[k * self.k_stride..][..n]);
                        }
                    }
                }
            } else if self.k_stride == 1 {
                transpose_rows(data, self.stride, n, width, panel);
            } else {
                for (k, line) in panel.chunks_exact_mut(width).enumerate() {
                    for (i, x) in line[..n].iter_mut().enumerate() {
                        *x = data[i * self.stride + k * self.k_stride];
                    }
                }
            }
        };
        /// The number of floats below which using other threads takes longer than packing.
        const SERIAL_LEN: usize = 64 * 1024;
        each_chunk(threads.and(Threads::for_work(panels.len(), SERIAL_LEN)), panel_len, panels, pack);
    }
}

/// Copies lines of `N` floats, which are `stride` apart.
fn copy_lines<const N: usize>(data: &[f32], stride: usize, lines: &mut [f32]) {
    for (k, line) in lines.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        line.copy_from_slice(&data[k * stride..][..N]);
    }
}

/// The two sides of a product, as they are multiplied.
struct Sides<'a> {
    left: Side<'a>,
    right: Side<'a>,
    /// Whether the left side has the columns of the result.
    is_swapped: bool,
}

/// The maximum number of rows for which `a` is packed instead of a transposed `b`: copying that would cost more than storing
/// results one by one.
pub(crate) const SWAPPED_ROWS: usize = 32;

impl<'a> Sides<'a> {
    fn new(a: Operand<'a>, b: Operand<'a>) -> Self {
        a.assert_in_bounds();
        b.assert_in_bounds();
        let (rows, cols) = (Side::rows(a, b.n_cols), Side::columns(b));
        if cols.k_stride == 1 && cols.len > 1 && rows.len <= SWAPPED_ROWS {
            return Self { left: cols, right: rows, is_swapped: true };
        }
        Self { left: rows, right: cols, is_swapped: false }
    }

    /// Packs what has to be packed for `depth`.
    fn with_packed(&self, depth: &Range<usize>, threads: Threads, f: impl FnOnce(Packed<'_>)) {
        let Self { left, right, is_swapped } = *self;
        let [height, width] = block();
        let is_packed = left.k_stride != 1;
        let n_left = if is_packed { left.packed_len(height, depth.len()) } else { 0 };
        with_room(n_left + right.packed_len(width, depth.len()), |room| {
            let (left_room, right_room) = room.split_at_mut(n_left);
            if is_packed {
                left.pack(height, depth, threads, left_room);
            }
            right.pack(width, depth, threads, right_room);
            let rows = if is_packed { Rows::Panels(left_room) } else { Rows::Lines(&left.data[depth.start..], left.stride) };
            let n = depth.len();
            f(Packed { rows, panels: right_room, n_packed: n, start: 0, depth: n, left, right, is_swapped });
        });
    }
}

/// The rows of the left side.
#[derive(Clone, Copy)]
enum Rows<'a> {
    /// Contiguous, at this distance.
    Lines(&'a [f32], usize),
    /// In panels as high as a block.
    Panels(&'a [f32]),
}

#[derive(Clone, Copy)]
struct Packed<'a> {
    rows: Rows<'a>,
    /// Panels of this many products, of which those from `start` on are computed.
    panels: &'a [f32],
    n_packed: usize,
    start: usize,
    depth: usize,
    left: Side<'a>,
    right: Side<'a>,
    is_swapped: bool,
}

/// Rows and columns of a block on this machine.
fn block() -> [usize; 2] {
    struct Size;
    impl WithSimd for Size {
        type Output = [usize; 2];

        #[inline(always)]
        fn with_simd<S: Simd>(self, _: S) -> [usize; 2] {
            [n_rows::<S>(), 2 * S::F32_LANES]
        }
    }
    Arch::new().dispatch(Size)
}

/// Rows of a block: with two vectors in each, their sums leave a few registers for the operands.
const fn n_rows<S: Simd>() -> usize {
    if has_32_registers::<S>() { 12 } else { 6 }
}

const fn has_32_registers<S: Simd>() -> bool {
    S::F32_LANES == 16 || cfg!(target_arch = "aarch64")
}

impl Packed<'_> {
    /// The products of a tile, written to the matrix `y` or added to it. Tiles begin and end between panels, or with the matrix.
    ///
    /// # Safety
    /// The tile must be within the matrix at `y` and no other thread may access it meanwhile.
    unsafe fn multiply(&self, y: Shared, (rows, cols): (&Range<usize>, &Range<usize>), onto: Onto) {
        let (left, right) = if self.is_swapped { (cols, rows) } else { (rows, cols) };
        Arch::new().dispatch(Multiply { packed: self, y, left, right, onto });
    }
}

struct Multiply<'a> {
    packed: &'a Packed<'a>,
    y: Shared,
    left: &'a Range<usize>,
    right: &'a Range<usize>,
    onto: Onto,
}

impl WithSimd for Multiply<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        if has_32_registers::<S>() { self.run::<S, 12>(simd) } else { self.run::<S, 6>(simd) }
    }
}

impl Multiply<'_> {
    #[inline(always)]
    fn run<S: Simd, const R: usize>(&self, simd: S) {
        let Packed { rows, panels, n_packed, start, depth, right, .. } = *self.packed;
        let width = 2 * S::F32_LANES;
        let mut first = self.right.start;
        while first < self.right.end {
            let p = first / width;
            let end = ((p + 1) * width).min(self.right.end).min(right.len);
            let panel = S::as_simd_f32s(&panels[(p * n_packed + start) * width..][..width * depth]).0.as_chunks::<2>().0;
            // A tile may begin or end within a panel.
            let place = Place { first, skipped: first - p * width, n_cols: end - first };
            match rows {
                Rows::Lines(data, stride) => self.lines::<S, R>(simd, place, data, stride, panel),
                Rows::Panels(data) => {
                    let mut row = self.left.start / R * R;
                    while row < self.left.end {
                        let lines = data[row * depth..][..R * depth].as_chunks::<R>().0;
                        let sums = packed::<S, R>(simd, lines, panel);
                        let inside = self.left.start.saturating_sub(row)..R.min(self.left.end - row);
                        if inside == (0..R) {
                            self.store(simd, row, place, sums);
                        } else {
                            for r in inside {
                                self.store(simd, row + r, place, [sums[r]]);
                            }
                        }
                        row += R;
                    }
                }
            }
            first = end;
        }
    }

    /// The products of a panel with contiguous rows, in blocks of `R` and, at the end, fewer rows.
    #[inline(always)]
    fn lines<S: Simd, const R: usize>(&self, simd: S, place: Place, data: &[f32], stride: usize, panel: &[[S::f32s; 2]]) {
        let Range { start: mut row, end } = *self.left;
        while row + R <= end {
            self.store(simd, row, place, lines::<S, R>(simd, &data[row * stride..], stride, panel));
            row += R;
        }
        if R > 6 && row + 6 <= end {
            self.store(simd, row, place, lines::<S, 6>(simd, &data[row * stride..], stride, panel));
            row += 6;
        }
        if row + 4 <= end {
            self.store(simd, row, place, lines::<S, 4>(simd, &data[row * stride..], stride, panel));
            row += 4;
        }
        if row + 2 <= end {
            self.store(simd, row, place, lines::<S, 2>(simd, &data[row * stride..], stride, panel));
            row += 2;
        }
        if row < end {
            self.store(simd, row, place, lines::<S, 1>(simd, &data[row * stride..], stride, panel));
        }
    }

    /// Stores the sums of `R` rows from `row` on. `sums` is not indexed by variables, so that it stays in registers.
    #[inline(always)]
    fn store<S: Simd, const R: usize>(&self, simd: S, row: usize, place: Place, sums: [[S::f32s; 2]; R]) {
        let (left, right) = (self.packed.left.y_stride, self.packed.right.y_stride);
        let Place { first, skipped, n_cols } = place;
        let width = 2 * S::F32_LANES;
        if right == 1 && n_cols == width {
            for (r, [low, high]) in sums.into_iter().enumerate() {
                // SAFETY: these elements are in the tile.
                let y = unsafe { std::slice::from_raw_parts_mut(self.y.at((row + r) * left + first), width) };
                let y = S::as_mut_simd_f32s(y).0;
                if self.onto == Onto::Sum {
                    (y[0], y[1]) = (simd.add_f32s(y[0], low), simd.add_f32s(y[1], high));
                } else {
                    (y[0], y[1]) = (low, high);
                }
            }
            return;
        }
        for (r, sums) in sums.into_iter().enumerate() {
            let sums: &[f32] = bytemuck::cast_slice(&sums);
            for (i, sum) in sums[skipped..][..n_cols].iter().enumerate() {
                // SAFETY: these elements are in the tile.
                let y = unsafe { &mut *self.y.at((row + r) * left + (first + i) * right) };
                *y = if self.onto == Onto::Sum { *y + sum } else { *sum };
            }
        }
    }
}

/// Where the columns of a block belong: the first in the result, how many of the panel precede it, and how many are stored.
#[derive(Clone, Copy)]
struct Place {
    first: usize,
    skipped: usize,
    n_cols: usize,
}

/// The products of `R` lines and a panel.
#[inline(always)]
fn lines<S: Simd, const R: usize>(simd: S, data: &[f32], stride: usize, panel: &[[S::f32s; 2]]) -> [[S::f32s; 2]; R] {
    let k = panel.len();
    let lines: [&[f32]; R] = from_fn(inlined!(|r| &data[r * stride..][..k]));
    let mut sums = [[simd.splat_f32s(0.0); 2]; R];
    for i in 0..k {
        fetch(panel, i + FETCHED);
        let [b0, b1] = panel[i];
        for r in 0..R {
            let x = simd.splat_f32s(lines[r][i]);
            sums[r] = [simd.mul_add_e_f32s(x, b0, sums[r][0]), simd.mul_add_e_f32s(x, b1, sums[r][1])];
        }
    }
    sums
}

/// The products of a panel of each side.
#[inline(always)]
fn packed<S: Simd, const R: usize>(simd: S, lines: &[[f32; R]], panel: &[[S::f32s; 2]]) -> [[S::f32s; 2]; R] {
    let mut sums = [[simd.splat_f32s(0.0); 2]; R];
    for (i, (line, &[b0, b1])) in lines.iter().zip(panel).enumerate() {
        fetch(panel, i + FETCHED);
        for r in 0..R {
            let x = simd.splat_f32s(line[r]);
            sums[r] = [simd.mul_add_e_f32s(x, b0, sums[r][0]), simd.mul_add_e_f32s(x, b1, sums[r][1])];
        }
    }
    sums
}

/// How many lines ahead a panel is fetched from the second-level cache. On a Xeon (Emerald Rapids), products took up to 1.16
/// times as long without.
const FETCHED: usize = 8;

/// Fetches a line of a panel into the first-level cache, on processors whose instruction for it is stable.
#[inline(always)]
fn fetch<V>(panel: &[[V; 2]], line: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let line = panel.as_ptr().wrapping_add(line).cast::<V>();
        // SAFETY: fetching ahead never fails, whatever the address is.
        unsafe {
            _mm_prefetch::<_MM_HINT_T0>(line.cast());
            if size_of::<V>() == 64 {
                _mm_prefetch::<_MM_HINT_T0>(line.wrapping_add(1).cast());
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (panel, line);
}

/// A pointer into the result, shared by the threads that write disjoint tiles of it.
#[derive(Clone, Copy)]
struct Shared(*mut f32);

// SAFETY: only `each_tile` shares one, and gives each thread tiles that no other thread has.
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
