use crate::core::adapter::Adapter;
use crate::core::dispatch::MAX_WORKGROUPS;
use crate::core::dtype::DType;
use crate::core::error::Error;
use crate::core::sizes::in_u32;

/// How a product of [`MatmulFamily::Tiled`](crate::MatmulFamily::Tiled) is divided into workgroups.
///
/// Operands are read as vectors if their contiguous dimensions are multiples of 4, else as single elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Invocations of a workgroup, along the rows and along the columns.
    pub lanes: [usize; 2],
    /// Blocks of 4 by 4 results that an invocation has, along the rows and along the columns: 1 or 2.
    pub blocks: [usize; 2],
    /// The number of K indices in workgroup memory at a time: a multiple of 4, small enough that each invocation fetches at most one block of each operand.
    pub depth: usize,
}

/// The number of workgroups that fill a GPU: two for each processor of the largest ones.
const N_FILLING: usize = 256;

impl Tiles {
    /// 128 by 128 results of 256 invocations: the least traffic.
    pub const LARGE: Self = Self { lanes: [16, 16], blocks: [2, 2], depth: 8 };
    /// 64 by 64 results of 64 invocations.
    pub const MEDIUM: Self = Self { lanes: [8, 8], blocks: [2, 2], depth: 8 };
    /// 32 by 32 results of 64 invocations: the most workgroups.
    pub const SMALL: Self = Self { lanes: [8, 8], blocks: [1, 1], depth: 16 };

    /// The largest tiles for which `adapter` has enough memory and that fill it with `n_slices` products of `m` by `n` results, else the smallest.
    pub fn choose(adapter: &Adapter, m: usize, n: usize, n_slices: usize) -> Self {
        Cut::Square.choose(adapter, m, n, n_slices)
    }

    /// Rows and columns of a tile.
    pub const fn size(&self) -> [usize; 2] {
        [4 * self.lanes[0] * self.blocks[0], 4 * self.lanes[1] * self.blocks[1]]
    }

    /// The number of tiles of a product of `m` by `n` results.
    pub const fn n_groups(&self, m: usize, n: usize) -> usize {
        let [n_rows, n_cols] = self.size();
        m.div_ceil(n_rows).saturating_mul(n.div_ceil(n_cols))
    }

    /// Whether a device supports the invocations and the memory of a workgroup.
    pub const fn fits(&self, adapter: &Adapter) -> bool {
        let limits = &adapter.limits;
        self.lanes[0] * self.lanes[1] <= limits.max_compute_invocations_per_workgroup as usize
            && self.workgroup_bytes() <= limits.max_compute_workgroup_storage_size as usize
    }

    /// Bytes of workgroup memory: two halves of both tiles, with one vec4 of padding for each K index.
    pub const fn workgroup_bytes(&self) -> usize {
        let [n_rows, n_cols] = self.size();
        2 * self.depth * (n_rows / 4 + n_cols / 4 + 2) * 16
    }

    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let Self { lanes: [lane_rows, lane_cols], blocks: [row_blocks, col_blocks], depth } = *self;
        [
            ("LANE_ROWS", lane_rows),
            ("LANE_COLS", lane_cols),
            ("ROW_BLOCKS", row_blocks),
            ("COL_BLOCKS", col_blocks),
            ("DEPTH", depth),
        ]
        .map(|(name, value)| (name, value as f64))
        .to_vec()
    }
}

/// How many sums an invocation keeps, which depends on what else it keeps in registers. With more, the compilers for Intel and Apple's M1 spill.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cut {
    /// 2 by 2 blocks of 4 by 4.
    Square,
    /// 2 by 1 blocks, in addition to the source pixels that a convolution reads, single elements, or totals in f32 of sums in f16.
    Long,
    /// 1 by 1, in addition to both the source pixels of a convolution and totals in f32.
    Single,
}

impl Cut {
    /// 128 by 64 results of 256 invocations, and 64 by 64 of 128. There are enough invocations that each fetches a block of only one operand, also for tiles of 16
    /// K indices.
    const LONG: [Tiles; 2] =
        [Tiles { lanes: [16, 16], blocks: [2, 1], depth: 8 }, Tiles { lanes: [8, 16], blocks: [2, 1], depth: 8 }];
    /// 64 by 64 results of 256 invocations.
    const SINGLE: [Tiles; 1] = [Tiles { lanes: [16, 16], blocks: [1, 1], depth: 8 }];

    /// The tiles of a product of two operands that are read as vectors; the first may be the source pixels of a convolution.
    pub(crate) fn of(adapter: &Adapter, operands: [DType; 2], reads_pixels: bool) -> Self {
        let has_totals = adapter.f16_places().is_some() && operands == [DType::F16; 2];
        match (reads_pixels, has_totals) {
            (false, false) => Self::Square,
            (true, false) | (false, true) => Self::Long,
            (true, true) => Self::Single,
        }
    }

    /// The largest tiles for which `adapter` has enough memory and that fill it with `n_slices` products of `m` by `n` results, else the smallest.
    pub(crate) fn choose(self, adapter: &Adapter, m: usize, n: usize, n_slices: usize) -> Tiles {
        let tiles: &[Tiles] = match self {
            Self::Square => &[Tiles::LARGE, Tiles::MEDIUM],
            Self::Long => &Self::LONG,
            Self::Single => &Self::SINGLE,
        };
        let fills = |tiles: &Tiles| tiles.n_groups(m, n).saturating_mul(n_slices) >= N_FILLING;
        tiles.iter().copied().find(|tiles| tiles.fits(adapter) && fills(tiles)).unwrap_or(Tiles::SMALL)
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
    if n_col_groups > max {
        return Err(Error::Size { kernel, size: "number of columns", found: n_cols, expected: "at most 65535 column blocks" });
    }
    let z = n_row_groups.div_ceil(max);
    if z > max {
        let expected = "at most 65535 * 65535";
        return Err(Error::Size { kernel, size: "number of row blocks", found: n_row_groups, expected });
    }
    Ok([n_col_groups, n_row_groups.div_ceil(z), z].map(in_u32))
}
