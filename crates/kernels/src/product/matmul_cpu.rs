use super::epilogue_cpu::Finish;
use super::gemm::{Operand, Tile, product};
use super::matmul_vector_cpu::{row_times_matrix, scale_row};
use crate::core::blocks::{cut, each_row};
use crate::core::transpose::transpose_into;
use crate::{Matmul, Transpose};

/// Rows and columns of a tile of the result, from large ones, which reuse their operands more, to small ones, which give work to more threads.
const TILES: [(usize, usize); 5] = [(256, 256), (256, 128), (256, 64), (128, 64), (64, 64)];
/// The same if `a` is transposed: its rows are then strided, and wide tiles read them less often.
const TILES_TRANSPOSED: [(usize, usize); 2] = [(128, 256), (64, 256)];
/// The minimum number of tiles: enough for the threads of a workstation.
const N_TILES: usize = 16;
/// The number of K indices that are summed at a time, so that values that several tiles read stay in cache.
const DEPTH: usize = 512;

/// Multiply-adds below which one thread finishes before another has woken up.
pub(crate) const SERIAL_WORK: usize = 64 * 1024;

/// `fused` is what ends the product: the epilogue and its further argument.
pub(crate) fn run(
    kernel: &Matmul,
    [a, b]: [&[f32]; 2],
    (finish, fused): (&Finish, &[f32]),
    y: &mut [f32],
    b_transposed: Option<&mut [f32]>,
) {
    let Matmul { m, n, k, transpose, .. } = *kernel;
    // A matrix with one row or column has the same memory layout as its transpose, so `b` need not be transposed.
    if k == 1 {
        return each_row(
            n,
            y,
            #[inline(always)]
            |row, y| {
                scale_row(a[row], b, y);
                finish.run(&fused[finish.operand_range(n, row, 0, n)], row * n, y);
            },
        );
    }
    if m == 1 || n == 1 {
        match (m == 1, if m == 1 { transpose.b() } else { transpose.a() }) {
            (true, false) => row_times_matrix(a, b, y),
            (true, true) => matrix_times_column(b, a, y),
            (false, false) => matrix_times_column(a, b, y),
            (false, true) => row_times_matrix(b, a, y),
        }
        return each_row(
            n,
            y,
            #[inline(always)]
            |row, y| finish.run(&fused[finish.operand_range(n, row, 0, n)], row * n, y),
        );
    }
    let a = match transpose.a() {
        false => Operand { data: a, n_rows: m, n_cols: k, row_stride: k, col_stride: 1 },
        true => Operand { data: a, n_rows: m, n_cols: k, row_stride: 1, col_stride: m },
    };
    let b = match b_transposed {
        None => Operand::right(b, [k, n], transpose),
        Some(transposed) => {
            transpose_into(b, n, k, transposed);
            Operand::right(transposed, [k, n], Transpose::None)
        }
    };
    let depths = cut(k, k.div_ceil(DEPTH), 16);
    product(
        a,
        b,
        y,
        &tiles(m, n, k, transpose),
        &depths,
        #[inline(always)]
        |row, cols, y| {
            finish.run(&fused[finish.operand_range(n, row, cols.start, cols.len())], row * n + cols.start, y);
        },
    );
}

/// A grid of tiles over `[m, n]`, which depends only on the shape.
pub(crate) fn tiles(m: usize, n: usize, k: usize, transpose: Transpose) -> Vec<Tile> {
    if m * n * k < SERIAL_WORK {
        return vec![(0..m, 0..n)];
    }
    let sizes: &[(usize, usize)] = if transpose.a() { &TILES_TRANSPOSED } else { &TILES };
    let enough = |&&(rows, cols): &&(usize, usize)| m.div_ceil(rows) * n.div_ceil(cols) >= N_TILES;
    let (n_rows, n_cols) = sizes.iter().find(enough).copied().unwrap_or(sizes[sizes.len() - 1]);
    let (rows, cols) = (cut(m, m.div_ceil(n_rows), 4), cut(n, n.div_ceil(n_cols), 16));
    rows.iter().flat_map(|rows| cols.iter().map(|cols| (rows.clone(), cols.clone()))).collect()
}

/// `y[row] = matrix[row, ..] · x` for `matrix: [y.len(), x.len()]`.
fn matrix_times_column(matrix: &[f32], x: &[f32], y: &mut [f32]) {
    let (m, k) = (y.len(), x.len());
    let matrix = Operand { data: matrix, n_rows: m, n_cols: k, row_stride: k, col_stride: 1 };
    let column = Operand { data: x, n_rows: k, n_cols: 1, row_stride: 1, col_stride: 1 };
    product(matrix, column, y, &tiles(m, 1, k, Transpose::None), std::slice::from_ref(&(0..k)), |_, _, _| {});
}
