use rayon::prelude::*;

use super::activation::{activate_in_place, scale_by_slope};
use super::blocks::cut;
use super::gemm::{Operand, Tile, product};
use crate::{Epilogue, Matmul};

/// Elements of a tile's edge: rows so that a tile of the result stays in the second-level cache, columns so that turning
/// or packing `b` is worth it.
const TILE_ROWS: usize = 128;
const MIN_TILE_ROWS: usize = 32;
/// How many tiles there should be: enough for the threads of a workstation, few enough to keep each tile large.
const N_TILES: usize = 16;

pub(crate) fn run(kernel: &Matmul, a: &[f32], b: &[f32], fused: &[f32], y: &mut [f32], b_turned: Option<&mut [f32]>) {
    let Matmul { m, n, k, transpose, epilogue } = *kernel;
    let a = match transpose.a() {
        false => Operand { data: a, n_rows: m, n_cols: k, row_stride: k, col_stride: 1 },
        true => Operand { data: a, n_rows: m, n_cols: k, row_stride: 1, col_stride: m },
    };
    let b: &[f32] = match b_turned {
        None => b,
        Some(turned) => {
            transpose_into(b, n, k, turned);
            turned
        }
    };
    let b = Operand { data: b, n_rows: k, n_cols: n, row_stride: n, col_stride: 1 };
    product(a, b, y, &tiles(m, n, k), |row, cols, y| match epilogue {
        Epilogue::None => {}
        Epilogue::Activation(act) => activate_in_place(act, y),
        Epilogue::Bias(act) => {
            y.iter_mut().zip(&fused[cols]).for_each(|(y, bias)| *y += bias);
            activate_in_place(act, y);
        }
        Epilogue::OutputGrad(act) => scale_by_slope(act, &fused[row * n..][cols], y),
    });
}

/// A grid of tiles over `[m, n]`, chosen by shape alone.
fn tiles(m: usize, n: usize, k: usize) -> Vec<Tile> {
    // Below this many multiply-adds one thread is done before another has woken.
    if m * n * k < 64 * 1024 {
        return vec![(0..m, 0..n)];
    }
    let n_row_tiles = m.div_ceil(TILE_ROWS).max((m / MIN_TILE_ROWS).min(N_TILES)).max(1);
    let rows = cut(m, n_row_tiles, 4);
    let cols = if rows.len() >= N_TILES / 2 { cut(n, 1, 1) } else { cut(n, (n / 64).clamp(1, N_TILES / rows.len()), 16) };
    rows.iter().flat_map(|rows| cols.iter().map(|cols| (rows.clone(), cols.clone()))).collect()
}

/// `turned[col, row] = x[row, col]`.
fn transpose_into(x: &[f32], n_rows: usize, n_cols: usize, turned: &mut [f32]) {
    const BLOCK: usize = 16;
    let band = |(i, out): (usize, &mut [f32])| {
        let first = i * BLOCK;
        for row in (0..n_rows).step_by(BLOCK) {
            let rows = row..(row + BLOCK).min(n_rows);
            for (col, line) in out.chunks_exact_mut(n_rows).enumerate() {
                for (y, r) in line[rows.clone()].iter_mut().zip(rows.clone()) {
                    *y = x[r * n_cols + first + col];
                }
            }
        }
    };
    if x.len() < 64 * 1024 {
        turned.chunks_mut(BLOCK * n_rows).enumerate().for_each(band);
    } else {
        turned.par_chunks_mut(BLOCK * n_rows).enumerate().for_each(band);
    }
}
