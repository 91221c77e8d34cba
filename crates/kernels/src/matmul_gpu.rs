//! Which dispatches a matrix product is on an adapter.

use crate::sliced_product::{SlicedProduct, Slices, halves};
use crate::{Adapter, DType, Dispatch, Error, MAX_WORKGROUPS, Matmul, MatmulFamily, fold_workgroups};

/// The most columns for which lanes go along the rows alone.
pub(crate) const NARROW_COLS: usize = 8;

/// How many floats of b a processor's cache keeps between the rows of blocks on a software adapter: a MiB of them.
const CACHED: usize = 1 << 18;

/// A module for matrix products, and the rows and columns one of its workgroups computes.
#[derive(PartialEq, Eq)]
struct Module {
    label: &'static str,
    wgsl: &'static str,
    n_rows: usize,
    n_cols: usize,
}

const PLAIN: Module = Module { label: "kernels.matmul", wgsl: include_str!("wgsl/matmul.wgsl"), n_rows: 8, n_cols: 16 };
const NARROW: Module =
    Module { label: "kernels.matmul.narrow", wgsl: include_str!("wgsl/matmul_narrow.wgsl"), n_rows: 64, n_cols: 1 };
const NARROW_VECTORS: Module = Module {
    label: "kernels.matmul.narrow_vectors",
    wgsl: include_str!("wgsl/matmul_narrow_vectors.wgsl"),
    n_rows: 64,
    n_cols: 1,
};
const DIRECT: Module =
    Module { label: "kernels.matmul.direct", wgsl: include_str!("wgsl/matmul_direct.wgsl"), n_rows: 16, n_cols: 128 };
const SUBGROUP: Module =
    Module { label: "kernels.matmul.subgroup", wgsl: include_str!("wgsl/matmul_subgroup.wgsl"), n_rows: 32, n_cols: 64 };
const SUBGROUP_ANY: Module =
    Module { label: "kernels.matmul.subgroup_any", wgsl: include_str!("wgsl/matmul_subgroup_any.wgsl"), n_rows: 8, n_cols: 64 };
const WIDE: Module = Module { label: "kernels.matmul.wide", wgsl: include_str!("wgsl/matmul_wide.wgsl"), n_rows: 32, n_cols: 64 };
const WIDE_ANY: Module =
    Module { label: "kernels.matmul.wide_any", wgsl: include_str!("wgsl/matmul_wide_any.wgsl"), n_rows: 8, n_cols: 64 };
const TILED_ANY: Module =
    Module { label: "kernels.matmul.tiled_any", wgsl: include_str!("wgsl/matmul_tiled_any.wgsl"), n_rows: 64, n_cols: 64 };

impl Matmul {
    /// Whether all modules but those for any shape can compute it, which are those that have forms for 16 bits.
    pub(crate) const fn is_of_vectors(&self) -> bool {
        let Self { m, n, k, transpose, .. } = *self;
        n.is_multiple_of(4) && k.is_multiple_of(4) && (!transpose.a() || m.is_multiple_of(4))
    }
}

/// The module of a family that computes this shape.
fn module(matmul: &Matmul, family: MatmulFamily, adapter: &Adapter, dtypes: &[DType]) -> &'static Module {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let is_f32 = !dtypes.iter().any(|dtype| dtype.is_half());
    let vectors = matmul.is_of_vectors();
    // One column is stored the same either way.
    let along_k = k.is_multiple_of(4) && !transpose.a() && (transpose.b() || n == 1);
    let pairs = n.is_multiple_of(8) && adapter.features.contains(wgpu::Features::SHADER_INT64);
    match family {
        MatmulFamily::Tiled | MatmulFamily::TiledBy(_) | MatmulFamily::Coop => &TILED_ANY,
        MatmulFamily::Direct if !is_f32 => &DIRECT,
        MatmulFamily::Subgroup if !is_f32 => &SUBGROUP,
        MatmulFamily::Direct | MatmulFamily::Subgroup if n <= NARROW_COLS && along_k => &NARROW_VECTORS,
        MatmulFamily::Direct | MatmulFamily::Subgroup if n <= NARROW_COLS => &NARROW,
        MatmulFamily::Direct if vectors => &DIRECT,
        MatmulFamily::Subgroup if pairs && vectors && m > WIDE_ANY.n_rows => &WIDE,
        MatmulFamily::Subgroup if pairs => &WIDE_ANY,
        MatmulFamily::Subgroup if vectors => &SUBGROUP,
        MatmulFamily::Subgroup if n > PLAIN.n_cols => &SUBGROUP_ANY,
        MatmulFamily::Direct | MatmulFamily::Subgroup => &PLAIN,
    }
}

/// The dispatches of `matmul` by tiles of vectors or on matrix units, if the family has them for it: the product, or those of all runs and their sum.
fn sliced(
    matmul: &Matmul,
    y_arg: usize,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Option<Result<Vec<Dispatch>, Error>> {
    let n_runs = matmul.n_runs();
    let tiles = family.tiles(adapter, matmul.m, matmul.n, n_runs).filter(|_| matmul.reads_vectors())?;
    let parts = y_arg + 1 + usize::from(matmul.transpose.b());
    let (slices, write) = if n_runs == 1 { (Slices::Pairs(1), y_arg) } else { (Slices::Runs(n_runs), parts) };
    // A binding that is not used has to be filled too.
    let reads = [0, 1, if y_arg == 3 { 2 } else { 1 }];
    let product = SlicedProduct { kernel: "matmul", matmul, slices, reads, write, dtypes };
    let mut dispatches = vec![product.dispatch(family, adapter, tiles)];
    if n_runs > 1 {
        dispatches.push(matmul.sum_of_runs(parts, y_arg));
    }
    Some(dispatches.into_iter().collect())
}

/// The dispatches of `matmul`, whose result is argument `y_arg` and whose arguments are stored as `dtypes` says; none are f32.
pub(crate) fn dispatches(
    matmul: &Matmul,
    y_arg: usize,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Result<Vec<Dispatch>, Error> {
    if let Some(dispatches) = sliced(matmul, y_arg, family, adapter, dtypes) {
        return dispatches;
    }
    let dtype = |arg: usize| dtypes.get(arg).copied().unwrap_or(DType::F32);
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let module = module(matmul, family, adapter, dtypes);
    let b_turned = y_arg + 1;
    let is_turned = transpose.b() && *module != NARROW_VECTORS;
    let mut dispatches = Vec::with_capacity(2);
    if is_turned {
        dispatches.push(turn(n, k, b_turned, dtype(1))?);
    }
    let b = if is_turned { b_turned } else { 1 };
    // A binding that is not used has to be filled too.
    let fused = if y_arg == 3 { 2 } else { b };
    let (n_row_groups, n_col_groups) = (m.div_ceil(module.n_rows), n.div_ceil(module.n_cols));
    if n_col_groups > MAX_WORKGROUPS as usize {
        return Err(Error::Size { kernel: "matmul", size: "n", found: n, expected: "at most 65535 column blocks" });
    }
    let z = n_row_groups.div_ceil(MAX_WORKGROUPS as usize);
    let mut workgroups = [n_col_groups as u32, n_row_groups.div_ceil(z) as u32, z as u32];
    // Where b stays in a cache, workgroups that follow one another share rows; where it does not, columns.
    let down = *module == WIDE && n * k > CACHED;
    if down {
        workgroups.swap(0, 1);
    }
    let mut constants = matmul.activation().constants();
    constants.push(("EPILOGUE", f64::from(matmul.epilogue_code())));
    if transpose.a() {
        constants.push(("TRANSPOSE_A", 1.0));
    }
    let reads = [0, b, fused];
    dispatches.push(Dispatch {
        label: module.label,
        wgsl: module.wgsl,
        entry: "main",
        constants,
        types: halves([("A", 0), ("B", b), ("FUSED", fused), ("Y", y_arg)].map(|(group, arg)| (group, dtype(arg)))),
        params: bytemuck::cast_slice(&[m as u32, n as u32, k as u32, u32::from(down)]).to_vec(),
        reads: reads.to_vec(),
        writes: vec![y_arg],
        workgroups,
    });
    Ok(dispatches)
}

/// b, argument 1, is turned into argument `b_turned`.
fn turn(n: usize, k: usize, b_turned: usize, dtype: DType) -> Result<Dispatch, Error> {
    // Those in 16 bits are multiples of 4.
    let (wgsl, n_lanes) = if dtype.is_half() {
        (include_str!("wgsl/matmul_transpose_blocks.wgsl"), n * k / 16)
    } else {
        (include_str!("wgsl/matmul_transpose.wgsl"), n * k)
    };
    Ok(Dispatch {
        label: "kernels.matmul.transpose",
        wgsl,
        entry: "main",
        constants: vec![],
        types: halves([("X", dtype)]),
        params: bytemuck::cast_slice(&[n as u32, k as u32, 0, 0]).to_vec(),
        reads: vec![1],
        writes: vec![b_turned],
        workgroups: fold_workgroups("matmul", n_lanes.div_ceil(64))?,
    })
}
