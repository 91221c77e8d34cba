/// How a product of [`MatmulFamily::Tiled`](crate::MatmulFamily::Tiled) is divided into workgroups.
///
/// Operands are read as vectors if their contiguous dimensions are multiples of 4, else as single elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tiles {
    /// Invocations of a workgroup, along the rows and along the columns.
    pub invocations: [usize; 2],
    /// Blocks of 4 by 4 results that an invocation has, along the rows and along the columns: 1 or 2.
    pub blocks: [usize; 2],
    /// The number of K indices in workgroup memory at a time: a multiple of 4, small enough that each invocation fetches at most
    /// one block of each operand.
    pub depth: usize,
}

impl Tiles {
    /// 128 by 128 results of 256 invocations: the least traffic.
    pub const LARGE: Self = Self { invocations: [16, 16], blocks: [2, 2], depth: 8 };
    /// 64 by 64 results of 64 invocations.
    pub const MEDIUM: Self = Self { invocations: [8, 8], blocks: [2, 2], depth: 8 };
    /// 32 by 32 results of 64 invocations: the most workgroups.
    pub const SMALL: Self = Self { invocations: [8, 8], blocks: [1, 1], depth: 16 };

    /// Rows and columns of a tile.
    pub const fn size(&self) -> [usize; 2] {
        [4 * self.invocations[0] * self.blocks[0], 4 * self.invocations[1] * self.blocks[1]]
    }

    /// The number of tiles of a product of `m` by `n` results.
    pub const fn n_groups(&self, m: usize, n: usize) -> usize {
        let [n_rows, n_cols] = self.size();
        m.div_ceil(n_rows).saturating_mul(n.div_ceil(n_cols))
    }

    /// Whether a device of these limits supports the invocations and the memory of a workgroup.
    pub(crate) const fn fits(&self, limits: &wgpu::Limits) -> bool {
        self.invocations[0] * self.invocations[1] <= limits.max_compute_invocations_per_workgroup as usize
            && self.workgroup_bytes() <= limits.max_compute_workgroup_storage_size as usize
    }

    /// Bytes of workgroup memory: two halves of both tiles, with one vec4 of padding for each K index.
    pub(crate) const fn workgroup_bytes(&self) -> usize {
        let [n_rows, n_cols] = self.size();
        2 * self.depth * (n_rows / 4 + n_cols / 4 + 2) * 16
    }

    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let Self { invocations: [invocation_rows, invocation_cols], blocks: [row_blocks, col_blocks], depth } = *self;
        [
            ("INVOCATION_ROWS", invocation_rows),
            ("INVOCATION_COLS", invocation_cols),
            ("ROW_BLOCKS", row_blocks),
            ("COL_BLOCKS", col_blocks),
            ("DEPTH", depth),
        ]
        .map(|(name, value)| (name, value as f64))
        .to_vec()
    }
}
