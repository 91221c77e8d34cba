use crate::{Adapter, CoopShape, DType, MatmulFamily};

/// How a convolution on matrix units is cut into groups: `wgsl/conv2d_coop.wgsl`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoopTiles {
    pub(crate) shape: CoopShape,
    /// Lanes of a group: those of four of the largest subgroups, but 128 at most.
    lanes: usize,
    /// Blocks of a tile along the rows and along the columns, as many as a group has of the largest subgroups.
    blocks: [usize; 2],
    /// Matrices of a block along either side.
    n_matrices: usize,
}

const MAX_LANES: usize = 128;
/// Subgroups that fill a card: four for each processor of the largest ones.
const N_FILLING: usize = 512;

impl CoopTiles {
    /// The cut of `n_slices` products of `m` by `n` results, where the family is that of matrix units and those of `adapter` can compute them: for operands
    /// in f16 whose channels are multiples of their size, where a group has the workgroup memory.
    pub(crate) fn choose(
        family: MatmulFamily,
        adapter: &Adapter,
        operands: [DType; 2],
        channels: [usize; 2],
        [m, n, n_slices]: [usize; 3],
    ) -> Option<Self> {
        let shape = adapter.coop.filter(|_| family == MatmulFamily::Coop && operands == [DType::F16; 2])?;
        let largest = (adapter.subgroup_max_size as usize).clamp(1, MAX_LANES);
        let lanes = (4 * largest).min(MAX_LANES);
        let n_blocks = lanes / largest;
        let cut = |n_matrices: usize| {
            // Tiles of few columns have many rows, of which few lanes can fetch too few places.
            let is_wide = n > n_matrices * shape.size() || lanes < MAX_LANES;
            let n_beside = if n_blocks == 4 && is_wide { 2 } else { 1 };
            Self { shape, lanes, blocks: [n_blocks / n_beside, n_beside], n_matrices }
        };
        let fills = |tiles: &Self| {
            let [n_rows, n_cols] = tiles.size();
            m.div_ceil(n_rows).saturating_mul(n.div_ceil(n_cols)).saturating_mul(n_slices * n_blocks) >= N_FILLING
        };
        let fits = |tiles: &Self| {
            tiles.depth() >= shape.size() && tiles.workgroup_bytes() <= adapter.limits.max_compute_workgroup_storage_size as usize
        };
        let tiles = Some(cut(4)).filter(|tiles| fills(tiles) && fits(tiles)).unwrap_or_else(|| cut(2));
        let is_whole = channels.iter().all(|n| n.is_multiple_of(shape.size()));
        (is_whole && fits(&tiles)).then_some(tiles)
    }

    /// Rows and columns of a tile.
    pub(crate) fn size(&self) -> [usize; 2] {
        self.blocks.map(|n_blocks| n_blocks * self.n_matrices * self.shape.size())
    }

    /// Places of the sum in workgroup memory: each lane fetches eight in four rows.
    fn depth(&self) -> usize {
        32 * self.lanes / self.size()[0]
    }

    /// Two halves of the patches, eight values more a row than there are, and a matrix of results for each block.
    fn workgroup_bytes(&self) -> usize {
        let patches = 2 * self.size()[0] * (self.depth() + 8);
        2 * patches + 4 * self.blocks[0] * self.blocks[1] * self.shape.size().pow(2)
    }

    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let [row_blocks, col_blocks] = self.blocks;
        [("LANES", self.lanes), ("ROW_BLOCKS", row_blocks), ("COL_BLOCKS", col_blocks), ("MATRICES", self.n_matrices)]
            .map(|(name, value)| (name, value as f64))
            .to_vec()
    }
}

/// The module for units of 8 by 8, made of that for units of 16 by 16.
pub(crate) fn for_eight(wgsl: &str) -> String {
    let scalars = "{ patches[at] = v.x; patches[at + 1u] = v.y; patches[at + 2u] = v.z; patches[at + 3u] = v.w; }";
    wgsl.replace("const SIZE = 16u;", "const SIZE = 8u;")
        .replace("coop_mat16x16", "coop_mat8x8")
        .replace("const WIDTH = 4u;", "const WIDTH = 1u;")
        .replace("patches: array<vec4<f16>, PATCHES_LEN>;", "patches: array<f16, PATCHES_LEN>;")
        .replace("{ patches[at / 4u] = v; }", scalars)
}
