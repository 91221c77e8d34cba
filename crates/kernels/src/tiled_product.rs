//! Products by tiles, where operands are read by vectors: `wgsl/matmul_tiled.wgsl`.

use crate::tiles::product_workgroups;
use crate::{Activation, Dispatch, Epilogue, Error, Matmul, Tiles, Transpose, fold_workgroups};

/// Runs of `k` are of so many places at least, and a multiple of it.
const RUN_PLACES: usize = 256;
/// The most runs.
const MAX_RUNS: usize = 32;
/// Elements that the sums of all runs may take together.
const RUNS_LEN: usize = 1024 * 1024;
/// Tiles that need no runs beside them.
const N_ENOUGH: usize = 128;

/// What a product has several of, each over groups of its own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Slices {
    /// Pairs of a batch.
    Pairs(usize),
    /// Runs of `k`, a result each.
    Runs(usize),
}

impl Slices {
    const fn len(self) -> usize {
        match self {
            Self::Pairs(n) | Self::Runs(n) => n,
        }
    }
}

impl Matmul {
    /// Whether the module can compute it: each operand's fastest size is a multiple of 4, and the result's.
    pub(crate) const fn reads_vectors(&self) -> bool {
        let Self { m, n, k, transpose, .. } = *self;
        let k_is_fastest = !matches!(transpose, Transpose::A);
        n.is_multiple_of(4) && (!k_is_fastest || k.is_multiple_of(4)) && (!transpose.a() || m.is_multiple_of(4))
    }

    /// How many runs `k` is cut into where there are too few results to fill a card, by shape alone: 1 for most. Gradients of weights are such.
    pub(crate) fn n_runs(&self) -> usize {
        let Self { m, n, k, epilogue, .. } = *self;
        let is_plain = matches!(epilogue, Epilogue::None | Epilogue::Activation(Activation::Identity));
        let n_tiles = Tiles::MEDIUM.n_groups(m, n).max(1);
        if !is_plain || !self.reads_vectors() || n_tiles > N_ENOUGH {
            return 1;
        }
        let of_memory = RUNS_LEN / m.saturating_mul(n).max(1);
        let wanted = (2 * N_ENOUGH / n_tiles).min(k / RUN_PLACES).min(of_memory).clamp(1, MAX_RUNS);
        k.div_ceil(run_places(k, wanted)).max(1)
    }
}

/// Places of `k` of each of about so many runs.
fn run_places(k: usize, n_runs: usize) -> usize {
    k.div_ceil(n_runs).next_multiple_of(RUN_PLACES)
}

/// The product over arguments `reads` (a, b, and what the epilogue reads, or any that is read) into argument `write`.
pub(crate) fn dispatch(
    kernel: &'static str,
    matmul: &Matmul,
    slices: Slices,
    tiles: Tiles,
    reads: [usize; 3],
    write: usize,
) -> Result<Dispatch, Error> {
    let Matmul { m, n, k, transpose, epilogue } = *matmul;
    let slice_k = match slices {
        Slices::Runs(n_runs) if n_runs > 1 => run_places(k, n_runs),
        _ => k,
    };
    let flag = |is: bool| f64::from(u8::from(is));
    let mut constants = tiles.constants();
    constants.extend(epilogue.activation().constants());
    constants.push(("EPILOGUE", f64::from(epilogue.code())));
    constants.push(("TRANSPOSE_A", flag(transpose.a())));
    constants.push(("TRANSPOSE_B", flag(transpose.b())));
    constants.push(("SPLIT", flag(matches!(slices, Slices::Runs(_)))));
    let [n_rows, n_cols] = tiles.size();
    let n_row_groups = m.div_ceil(n_rows).saturating_mul(slices.len());
    Ok(Dispatch {
        label: "kernels.matmul.tiled",
        wgsl: include_str!("wgsl/matmul_tiled.wgsl"),
        entry: "main",
        constants,
        types: vec![],
        params: bytemuck::cast_slice(&[m as u32, n as u32, k as u32, slice_k as u32, slices.len() as u32, 0, 0, 0]).to_vec(),
        reads: reads.to_vec(),
        writes: vec![write],
        workgroups: product_workgroups(kernel, n, n.div_ceil(n_cols), n_row_groups)?,
    })
}

/// The sum of the runs' results, argument `parts`, into argument `write`.
pub(crate) fn sum_of_runs(matmul: &Matmul, n_runs: usize, parts: usize, write: usize) -> Result<Dispatch, Error> {
    let n_results = matmul.m * matmul.n;
    Ok(Dispatch {
        label: "kernels.matmul.sum",
        wgsl: include_str!("wgsl/column_sum.wgsl"),
        entry: "add_parts",
        constants: vec![],
        types: vec![],
        params: bytemuck::cast_slice(&[0, n_results as u32, n_runs as u32, 0]).to_vec(),
        reads: vec![parts],
        writes: vec![write],
        workgroups: fold_workgroups("matmul", n_results.div_ceil(64))?,
    })
}
