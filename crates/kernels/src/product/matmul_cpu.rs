use super::epilogue_cpu::Finish;
use super::matmul_vector_cpu::{matrix_times_column, row_times_matrix, scale_row};
use crate::cpu::blocks::{cut, each_row};
use crate::cpu::transpose::transpose_rows;
use crate::gemm::gemm::{DEPTH, Onto, Operand, SWAPPED_ROWS, Tile, product};
use crate::product::matmul::Matmul;
use crate::vectorised::inlined;

/// Rows and columns of a tile of the result: large ones reuse operands more, small ones give work to more threads.
const TILES: [(usize, usize); 6] = [(240, 256), (240, 128), (120, 128), (120, 64), (48, 64), (24, 32)];
/// The minimum number of tiles: enough for the threads of a workstation.
const N_TILES: usize = 32;

/// Multiply-adds below which one thread finishes before another has woken up.
pub(crate) const SERIAL_WORK: usize = 64 * 1024;

/// One product, whose result has the rows from `first_row` on. `packed` is `b` as [`Packing`](crate::Packing) copies it, if there
/// is a copy already. `fused` is what ends the product: the epilogue and its further argument.
pub(crate) fn run(
    kernel: &Matmul,
    [a, b]: [&[f32]; 2],
    packed: Option<&[f32]>,
    (finish, fused): (&Finish, &[f32]),
    first_row: usize,
    y: &mut [f32],
) {
    let Matmul { m, n, k, transpose, .. } = *kernel;
    let rows = Rows { finish, operand: fused, first_row, n };
    // A matrix with one row or column has the same memory layout as its transpose, so `b` need not be transposed.
    if k == 1 {
        return each_row(
            n,
            y,
            inlined!(|row, y| {
                scale_row(a[row], b, y);
                rows.end(row, 0, y);
            }),
        );
    }
    if m == 1 || n == 1 {
        match (m == 1, if m == 1 { transpose.b() } else { transpose.a() }) {
            (true, false) => row_times_matrix(a, b, y),
            (true, true) => matrix_times_column(b, a, y),
            (false, false) => matrix_times_column(a, b, y),
            (false, true) => row_times_matrix(b, a, y),
        }
        return each_row(n, y, inlined!(|row, y| rows.end(row, 0, y)));
    }
    // `x xᵀ` or `xᵀ x`: each pair of sums that are equal is computed once.
    let is_symmetric = std::ptr::eq(a, b) && transpose.a() != transpose.b() && kernel.epilogue.is_none();
    let a = match transpose.a() {
        false => Operand { data: a, n_rows: m, n_cols: k, row_stride: k, col_stride: 1 },
        true => Operand { data: a, n_rows: m, n_cols: k, row_stride: 1, col_stride: m },
    };
    let b = Operand::right(b, [k, n], transpose);
    let (mut tiles, depths) = (tiles(m, n, k), cut(k, k.div_ceil(DEPTH), 16));
    let below = if is_symmetric { take_below_diagonal(&mut tiles) } else { Vec::new() };
    product(Onto::Nothing, a, (b, packed), y, &tiles, &depths, inlined!(|row, cols, y| rows.end(row, cols.start, y)));
    for (rows, cols) in below {
        let (above, y) = y.split_at_mut(rows.start * n);
        transpose_rows(&above[rows.start..], n, cols.end, n, &mut y[..rows.len() * n]);
    }
}

/// Removes the tiles below the diagonal, and returns the columns of each row of them.
fn take_below_diagonal(tiles: &mut Vec<Tile>) -> Vec<Tile> {
    let mut below: Vec<Tile> = Vec::new();
    tiles.retain(|(rows, cols)| {
        if cols.end > rows.start {
            return true;
        }
        match below.last_mut() {
            Some((before, until)) if before == rows => until.end = cols.end,
            _ => below.push((rows.clone(), cols.clone())),
        }
        false
    });
    below
}

/// The rows of a product, whose sums an epilogue ends.
struct Rows<'a> {
    finish: &'a Finish,
    operand: &'a [f32],
    first_row: usize,
    n: usize,
}

impl Rows<'_> {
    /// Ends the sums of a row from column `first` on.
    #[inline(always)]
    fn end(&self, row: usize, first: usize, y: &mut [f32]) {
        let Self { finish, operand, first_row, n } = *self;
        let row = first_row + row;
        finish.run(&operand[finish.operand_range(n, row, first, y.len())], row * n + first, y);
    }
}

/// A grid of tiles over `[m, n]`, which depends only on the shape.
pub(crate) fn tiles(m: usize, n: usize, k: usize) -> Vec<Tile> {
    if m * n * k < SERIAL_WORK {
        return vec![(0..m, 0..n)];
    }
    // Rows of small results are not divided: they may be a panel.
    if m <= SWAPPED_ROWS {
        return cut(n, n.div_ceil(32), 32).into_iter().map(|cols| (0..m, cols)).collect();
    }
    let enough = |&&(rows, cols): &&(usize, usize)| m.div_ceil(rows) * n.div_ceil(cols) >= N_TILES;
    let (n_rows, n_cols) = TILES.iter().find(enough).copied().unwrap_or(TILES[TILES.len() - 1]);
    let (rows, cols) = (cut(m, m.div_ceil(n_rows), 12), cut(n, n.div_ceil(n_cols), 32));
    rows.iter().flat_map(|rows| cols.iter().map(|cols| (rows.clone(), cols.clone()))).collect()
}
