//! Products in slices, by tiles of vectors or on tensor cores: `matmul_tiled.wgsl`, `matmul_coop.wgsl`.

use super::coop_tiles::matrices_part;
use super::epilogue::Results;
use super::modules;
use super::tile_form::TileForm;
use super::tiles::product_workgroups;
use crate::map::map_reduce_module::sum_of_parts;
use crate::{Adapter, CoopShape, DType, Dispatch, Error, Matmul, MatmulFamily, Tiles, Transpose, fold_workgroups};

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
    /// Whether tiles of vectors can compute it: each operand's fastest size is a multiple of 4, and the result's.
    pub(crate) const fn reads_vectors(&self) -> bool {
        let Self { m, n, k, transpose, .. } = *self;
        let k_is_fastest = !matches!(transpose, Transpose::A);
        n.is_multiple_of(4) && (!k_is_fastest || k.is_multiple_of(4)) && (!transpose.a() || m.is_multiple_of(4))
    }

    /// How many runs `k` is cut into where there are too few results to fill a card, by shape alone: 1 for most. Gradients of weights are such.
    pub(crate) fn n_runs(&self) -> usize {
        let Self { m, n, k, .. } = *self;
        let n_tiles = Tiles::MEDIUM.n_groups(m, n).max(1);
        if !self.epilogue.is_none() || !(self.reads_vectors() || self.is_thin()) || n_tiles > N_ENOUGH {
            return 1;
        }
        let of_memory = RUNS_LEN / m.saturating_mul(n).max(1);
        let wanted = (2 * N_ENOUGH / n_tiles).min(k / RUN_PLACES).min(of_memory).clamp(1, MAX_RUNS);
        k.div_ceil(run_places(k, wanted)).max(1)
    }

    /// The sum of the runs' results, argument `parts`, into argument `write`.
    pub(crate) fn sum_of_runs(&self, parts: usize, write: usize) -> Result<Dispatch, Error> {
        sum_of_parts("kernels.matmul.sum", [self.n_runs(), self.m * self.n], parts, write)
    }
}

/// Places of `k` of each of about so many runs.
pub(crate) fn run_places(k: usize, n_runs: usize) -> usize {
    k.div_ceil(n_runs).max(1).next_multiple_of(RUN_PLACES)
}

/// A product over arguments of a kernel.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlicedProduct<'a> {
    pub(crate) kernel: &'static str,
    /// Of each slice, or of all runs together.
    pub(crate) matmul: &'a Matmul,
    pub(crate) slices: Slices,
    /// a, b, and what the epilogue reads, or any that is read.
    pub(crate) reads: [usize; 3],
    pub(crate) write: usize,
    /// How the kernel's arguments are stored; those after the last are f32.
    pub(crate) dtypes: &'a [DType],
}

impl SlicedProduct<'_> {
    fn dtype(&self, arg: usize) -> DType {
        self.dtypes.get(arg).copied().unwrap_or(DType::F32)
    }

    fn params(&self) -> Vec<u8> {
        let Matmul { m, n, k, .. } = *self.matmul;
        let slice_k = match self.slices {
            Slices::Runs(n_runs) if n_runs > 1 => run_places(k, n_runs),
            _ => k,
        };
        bytemuck::cast_slice(&[m as u32, n as u32, k as u32, slice_k as u32, self.slices.len() as u32, 0, 0, 0]).to_vec()
    }

    fn constants(&self) -> Vec<(&'static str, f64)> {
        let transpose = self.matmul.transpose;
        let flag = |is: bool| f64::from(u8::from(is));
        vec![
            ("TRANSPOSE_A", flag(transpose.a())),
            ("TRANSPOSE_B", flag(transpose.b())),
            ("SPLIT", flag(matches!(self.slices, Slices::Runs(_)))),
        ]
    }

    /// On tensor cores, where the family is theirs and they can compute it, else by tiles of vectors.
    pub(crate) fn dispatch(&self, family: MatmulFamily, adapter: &Adapter, tiles: Tiles) -> Result<Dispatch, Error> {
        match self.coop_shape(adapter).filter(|_| family == MatmulFamily::Coop) {
            Some(shape) => self.coop(shape, adapter),
            None => self.tiled(tiles, adapter),
        }
    }

    fn tiled(&self, tiles: Tiles, adapter: &Adapter) -> Result<Dispatch, Error> {
        let Matmul { m, n, .. } = *self.matmul;
        let [a, b, fused] = self.reads;
        let [n_rows, n_cols] = tiles.size();
        let form = TileForm::new(adapter, [self.dtype(a), self.dtype(b)], tiles);
        let mut constants = self.constants();
        constants.extend(form.constants);
        let stored = [("A", a), ("B", b), ("FUSED", fused), ("Y", self.write)].map(|(group, arg)| (group, self.dtype(arg)));
        let types: Vec<_> = stored.into_iter().chain(form.types).collect();
        Ok(Dispatch {
            label: "kernels.matmul.tiled",
            wgsl: modules::MATMUL_TILED.module_on(adapter, &types).with_all(self.matmul.epilogue.parts(Results::Four)),
            entry: "main",
            constants,
            params: self.params(),
            reads: self.reads.to_vec(),
            writes: vec![self.write],
            workgroups: product_workgroups(
                self.kernel,
                n,
                n.div_ceil(n_cols),
                m.div_ceil(n_rows).saturating_mul(self.slices.len()),
            )?,
        })
    }

    /// The tensor cores that can compute it: those of `adapter`, for operands in f16 whose sizes are multiples of theirs.
    fn coop_shape(&self, adapter: &Adapter) -> Option<CoopShape> {
        let Matmul { m, n, k, .. } = *self.matmul;
        let in_f16 = self.reads[..2].iter().all(|&arg| self.dtype(arg) == DType::F16);
        adapter.coop.filter(|shape| in_f16 && [m, n, k].iter().all(|size| size.is_multiple_of(shape.size())))
    }

    fn coop(&self, shape: CoopShape, adapter: &Adapter) -> Result<Dispatch, Error> {
        let Matmul { m, n, .. } = *self.matmul;
        let n_blocks = |n_matrices: usize| {
            let block = n_matrices * shape.size();
            (2 * m.div_ceil(2 * block)).saturating_mul(n.div_ceil(block)).saturating_mul(self.slices.len())
        };
        let n_matrices = if n_blocks(4) >= N_FILLING { 4 } else { 2 };
        let [n_most, n_least] = adapter.coop_subgroups();
        let mut constants = self.constants();
        constants.push(("LANES", COOP_LANES as f64));
        constants.push(("N_SUBGROUPS", n_most as f64));
        constants.push(("MATRICES", n_matrices as f64));
        let types = [("FUSED", self.reads[2]), ("Y", self.write)].map(|(group, arg)| (group, self.dtype(arg)));
        Ok(Dispatch {
            label: "kernels.matmul.coop",
            wgsl: modules::MATMUL_COOP
                .module_on(adapter, &types)
                .with(matrices_part(shape))
                .with_all(self.matmul.epilogue.parts(Results::Four)),
            entry: "main",
            constants,
            params: self.params(),
            reads: self.reads.to_vec(),
            writes: vec![self.write],
            workgroups: fold_workgroups(self.kernel, n_blocks(n_matrices).div_ceil(n_least))?,
        })
    }
}

/// Invocations of a group on tensor cores: a multiple of the invocations of any subgroup.
const COOP_LANES: usize = 128;
/// Subgroups that fill a card: four for each processor of the largest ones.
const N_FILLING: usize = 512;

impl CoopShape {
    /// Whether a device has the invocations of a group, and workgroup memory for a matrix of sums of each of its subgroups and their number.
    pub(crate) fn fits(self, adapter: &Adapter) -> bool {
        let [n_most, _] = adapter.coop_subgroups();
        let n_bytes = 4 * (n_most * self.size() * self.size() + 1);
        let limits = &adapter.limits;
        COOP_LANES <= limits.max_compute_invocations_per_workgroup as usize
            && n_bytes <= limits.max_compute_workgroup_storage_size as usize
    }
}

impl Adapter {
    /// Subgroups that a group on tensor cores has at most and at least.
    fn coop_subgroups(&self) -> [usize; 2] {
        [self.subgroup_min_size, self.subgroup_max_size].map(|n_lanes| COOP_LANES / (n_lanes as usize).clamp(1, COOP_LANES))
    }
}
