use crate::adapter::adapter::Adapter;
use crate::adapter::tiles::Tiles;
use crate::dtype::DType;
use crate::error::Error;
use crate::shader::dispatch::MAX_WORKGROUPS;
use crate::sizes::{check_size, in_u32};

/// The number of workgroups that fill a GPU: two for each processor of the largest ones.
const N_FILLING: usize = 256;

impl Tiles {
    /// The largest tiles for which `adapter` has enough memory and that fill it with `n_slices` products of `m` by `n` results,
    /// else the smallest.
    pub fn choose(adapter: &Adapter, m: usize, n: usize, n_slices: usize) -> Self {
        Cut::Square.choose(adapter, m, n, n_slices)
    }
}

/// How many sums an invocation keeps, which depends on what else it keeps in registers. With more, the compilers for Intel and
/// Apple's M1 spill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cut {
    /// 2 by 2 blocks of 4 by 4.
    Square,
    /// 2 by 1 blocks, in addition to the source pixels that a convolution reads, single elements, or f32 totals of f16 sums.
    Long,
    /// 1 by 1, in addition to both the source pixels of a convolution and totals in f32.
    Single,
}

impl Cut {
    /// 128 by 64 results of 256 invocations, and 64 by 64 of 128. There are enough invocations that each fetches a block of only
    /// one operand, also for tiles of 16 K indices.
    const LONG: [Tiles; 2] =
        [Tiles { invocations: [16, 16], blocks: [2, 1], depth: 8 }, Tiles { invocations: [8, 16], blocks: [2, 1], depth: 8 }];
    /// 64 by 64 results of 256 invocations.
    const SINGLE: [Tiles; 1] = [Tiles { invocations: [16, 16], blocks: [1, 1], depth: 8 }];

    /// The tiles of a product of two operands that are read as vectors; the first may be the source pixels of a convolution.
    pub(crate) fn of(adapter: &Adapter, operands: [DType; 2], reads_pixels: bool) -> Self {
        let has_totals = adapter.f16_sum_len().is_some() && operands == [DType::F16; 2];
        match (reads_pixels, has_totals) {
            (false, false) => Self::Square,
            (true, false) | (false, true) => Self::Long,
            (true, true) => Self::Single,
        }
    }

    /// The largest tiles for which `adapter` has enough memory and that fill it with `n_slices` products of `m` by `n` results,
    /// else the smallest.
    pub(crate) fn choose(self, adapter: &Adapter, m: usize, n: usize, n_slices: usize) -> Tiles {
        let tiles: &[Tiles] = match self {
            Self::Square => &[Tiles::LARGE, Tiles::MEDIUM],
            Self::Long => &Self::LONG,
            Self::Single => &Self::SINGLE,
        };
        let fills = |tiles: &Tiles| tiles.n_groups(m, n).saturating_mul(n_slices) >= N_FILLING;
        tiles.iter().copied().find(|tiles| tiles.fits(&adapter.limits) && fills(tiles)).unwrap_or(Tiles::SMALL)
    }
}

/// Workgroups of a product: column tiles along x, row tiles of all slices along y and z; the last of these may be beyond the end.
pub(crate) fn product_workgroups(
    kernel: &'static str,
    n_cols: usize,
    n_col_groups: usize,
    n_row_groups: usize,
) -> Result<[u32; 3], Error> {
    let max = MAX_WORKGROUPS as usize;
    check_size(kernel, ("number of columns", n_cols), n_col_groups <= max, "at most 65535 column blocks")?;
    let z = n_row_groups.div_ceil(max);
    check_size(kernel, ("number of row blocks", n_row_groups), z <= max, "at most 65535 * 65535")?;
    Ok([n_col_groups, n_row_groups.div_ceil(z), z].map(in_u32))
}
