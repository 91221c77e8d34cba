//! Which dispatches a matrix product is on an adapter.

use std::sync::OnceLock;

use crate::tiled_product::{self, Slices};
use crate::{Adapter, AdapterKind, Dispatch, Error, MAX_WORKGROUPS, Matmul, Tiles, fold_workgroups};

/// The ways in which a matrix product is computed on a GPU.
///
/// `BRISK_FAMILY=direct|subgroup|tiled` in the environment, read once, is taken instead of the choice by adapter and shape; it is there to
/// compare them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatmulFamily {
    /// Register blocks, no barriers: for software adapters, and for results of few columns.
    Direct,
    /// Register blocks whose lanes read for one another: for software adapters, where the device has [`wgpu::Features::SUBGROUP`] and
    /// subgroups of at least 8.
    Subgroup,
    /// Tiles of both operands in workgroup memory: for hardware. How they are cut goes by adapter and shape.
    Tiled,
    /// The same by a cut of one's own, which holds where operands are read by vectors: for callers who measure which is faster.
    TiledBy(Tiles),
}

impl MatmulFamily {
    /// The family for a product of `n_cols` columns on `adapter`.
    pub fn choose(adapter: &Adapter, n_cols: usize) -> Self {
        static WISH: OnceLock<Option<MatmulFamily>> = OnceLock::new();
        let wish = WISH.get_or_init(|| match std::env::var("BRISK_FAMILY").as_deref() {
            Ok("direct") => Some(Self::Direct),
            Ok("subgroup") => Some(Self::Subgroup),
            Ok("tiled") => Some(Self::Tiled),
            _ => None,
        });
        match (wish, adapter.kind) {
            (Some(wish), _) => *wish,
            (None, AdapterKind::Hardware) if n_cols > NARROW_COLS => Self::Tiled,
            (None, AdapterKind::Software) if Self::has_subgroups(adapter) => Self::Subgroup,
            _ => Self::Direct,
        }
    }

    fn has_subgroups(adapter: &Adapter) -> bool {
        adapter.features.contains(wgpu::Features::SUBGROUP) && adapter.subgroup_min_size >= 8
    }

    /// Whether a device can run it.
    pub fn runs_on(self, adapter: &Adapter) -> bool {
        match self {
            Self::Direct | Self::Tiled => true,
            Self::Subgroup => Self::has_subgroups(adapter),
            Self::TiledBy(tiles) => tiles.fits(adapter),
        }
    }

    pub(crate) fn check(self, kernel: &'static str, adapter: &Adapter) -> Result<(), Error> {
        if self.runs_on(adapter) {
            return Ok(());
        }
        let found = format!("{self:?} on `{}`", adapter.name);
        let expected = match self {
            Self::TiledBy(_) => "lanes and workgroup memory within the device's limits; take smaller tiles",
            _ => "a device made with `Features::SUBGROUP`, whose subgroups have at least 8 lanes",
        };
        Err(Error::Unsupported { kernel, found, expected })
    }

    /// The cut of `n_slices` products of `m` by `n` results, where the family has tiles.
    pub(crate) fn tiles(self, adapter: &Adapter, m: usize, n: usize, n_slices: usize) -> Option<Tiles> {
        match self {
            Self::Direct | Self::Subgroup => None,
            Self::Tiled => Some(Tiles::choose(adapter, m, n, n_slices)),
            Self::TiledBy(tiles) => Some(tiles),
        }
    }
}

/// The most columns for which lanes go along the rows alone.
const NARROW_COLS: usize = 8;

/// A module for matrix products, and the rows and columns one of its workgroups computes.
struct Module {
    label: &'static str,
    wgsl: &'static str,
    n_rows: usize,
    n_cols: usize,
}

const PLAIN: Module = Module { label: "kernels.matmul", wgsl: include_str!("wgsl/matmul.wgsl"), n_rows: 8, n_cols: 16 };
const NARROW: Module =
    Module { label: "kernels.matmul.narrow", wgsl: include_str!("wgsl/matmul_narrow.wgsl"), n_rows: 64, n_cols: 1 };
const DIRECT: Module =
    Module { label: "kernels.matmul.direct", wgsl: include_str!("wgsl/matmul_direct.wgsl"), n_rows: 16, n_cols: 128 };
const SUBGROUP: Module =
    Module { label: "kernels.matmul.subgroup", wgsl: include_str!("wgsl/matmul_subgroup.wgsl"), n_rows: 32, n_cols: 64 };
const TILED_ANY: Module =
    Module { label: "kernels.matmul.tiled_any", wgsl: include_str!("wgsl/matmul_tiled_any.wgsl"), n_rows: 64, n_cols: 64 };

/// The module of a family that computes this shape.
fn module(matmul: &Matmul, family: MatmulFamily) -> &'static Module {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let vectors = n.is_multiple_of(4) && k.is_multiple_of(4) && (!transpose.a() || m.is_multiple_of(4));
    match family {
        MatmulFamily::Tiled | MatmulFamily::TiledBy(_) => &TILED_ANY,
        MatmulFamily::Direct | MatmulFamily::Subgroup if n <= NARROW_COLS => &NARROW,
        MatmulFamily::Direct | MatmulFamily::Subgroup if !vectors => &PLAIN,
        MatmulFamily::Direct => &DIRECT,
        MatmulFamily::Subgroup => &SUBGROUP,
    }
}

/// The dispatches of `matmul` by tiles of vectors: the product, or those of all runs and their sum.
fn tiled(matmul: &Matmul, y_arg: usize, tiles: Tiles) -> Result<Vec<Dispatch>, Error> {
    let n_runs = matmul.n_runs();
    // A binding that is not used has to be filled too.
    let reads = [0, 1, if y_arg == 3 { 2 } else { 1 }];
    let product = |slices, write| tiled_product::dispatch("matmul", matmul, slices, tiles, reads, write);
    if n_runs == 1 {
        return Ok(vec![product(Slices::Pairs(1), y_arg)?]);
    }
    let parts = y_arg + 1 + usize::from(matmul.transpose.b());
    Ok(vec![product(Slices::Runs(n_runs), parts)?, tiled_product::sum_of_runs(matmul, n_runs, parts, y_arg)?])
}

/// The dispatches of `matmul`, whose result is argument `y_arg`.
pub(crate) fn dispatches(matmul: &Matmul, y_arg: usize, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
    if let Some(tiles) = family.tiles(adapter, matmul.m, matmul.n, matmul.n_runs()).filter(|_| matmul.reads_vectors()) {
        return tiled(matmul, y_arg, tiles);
    }
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let b_turned = y_arg + 1;
    let mut dispatches = Vec::with_capacity(2);
    if transpose.b() {
        dispatches.push(Dispatch {
            label: "kernels.matmul.transpose",
            wgsl: include_str!("wgsl/matmul_transpose.wgsl"),
            entry: "main",
            constants: vec![],
            types: vec![],
            params: bytemuck::cast_slice(&[n as u32, k as u32, 0, 0]).to_vec(),
            reads: vec![1],
            writes: vec![b_turned],
            workgroups: fold_workgroups("matmul", (n * k).div_ceil(64))?,
        });
    }
    let b = if transpose.b() { b_turned } else { 1 };
    // A binding that is not used has to be filled too.
    let fused = if y_arg == 3 { 2 } else { b };
    let module = module(matmul, family);
    let (n_row_groups, n_col_groups) = (m.div_ceil(module.n_rows), n.div_ceil(module.n_cols));
    if n_col_groups > MAX_WORKGROUPS as usize {
        return Err(Error::Size { kernel: "matmul", size: "n", found: n, expected: "at most 65535 column blocks" });
    }
    let z = n_row_groups.div_ceil(MAX_WORKGROUPS as usize);
    let mut constants = matmul.activation().constants();
    constants.push(("EPILOGUE", f64::from(matmul.epilogue_code())));
    constants.push(("TRANSPOSE_A", f64::from(u8::from(transpose.a()))));
    dispatches.push(Dispatch {
        label: module.label,
        wgsl: module.wgsl,
        entry: "main",
        constants,
        types: vec![],
        params: bytemuck::cast_slice(&[m as u32, n as u32, k as u32, 0]).to_vec(),
        reads: vec![0, b, fused],
        writes: vec![y_arg],
        workgroups: [n_col_groups as u32, n_row_groups.div_ceil(z) as u32, z as u32],
    });
    Ok(dispatches)
}
