use crate::{Adapter, CoopShape, Part};

/// How a product on cooperative matrices is cut into workgroups: `main_coop.wgsl`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoopTiles {
    shape: CoopShape,
    gathered: Option<Gathered>,
    /// Invocations of a workgroup: those of four subgroups, but 128 at most.
    lanes: usize,
    /// Blocks of a tile, each a subgroup's, along the rows and along the columns: four.
    blocks: [usize; 2],
    /// Matrices of a block along either side.
    n_matrices: usize,
}

/// Which operand is gathered into workgroup memory; others are loaded from where they are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gathered {
    /// That of the rows of the result.
    Rows,
    /// That of its columns.
    Columns,
}

const MAX_LANES: usize = 128;
/// Invocations of a subgroup of most cards that have tensor cores, where an adapter lists a range.
const USUAL_LANES: u32 = 32;
/// Blocks of a tile.
const N_BLOCKS: usize = 4;
/// Blocks that fill a card: four for each processor of the largest ones.
const N_FILLING: usize = 512;

impl CoopTiles {
    /// The cut of `n_slices` products of `n_rows` by `n_cols` results, where a workgroup of `adapter` has the memory.
    pub(crate) fn choose(
        shape: CoopShape,
        adapter: &Adapter,
        gathered: Option<Gathered>,
        [n_rows, n_cols]: [usize; 2],
        n_slices: usize,
    ) -> Option<Self> {
        let usual = USUAL_LANES.min(adapter.subgroup_max_size).max(adapter.subgroup_min_size).max(1);
        let lanes = (N_BLOCKS * usual as usize).min(MAX_LANES);
        let of_size = |n_matrices: usize| {
            let block = n_matrices * shape.size();
            // In a tile that is long along what is gathered, few invocations can fetch only few indices of K.
            let may_be_long = gathered.is_none() || lanes == MAX_LANES;
            let blocks = match gathered {
                _ if !may_be_long => [2, 2],
                Some(Gathered::Columns) if n_rows <= block => [1, 4],
                None | Some(Gathered::Rows) if n_cols <= block => [4, 1],
                None if n_rows <= block => [1, 4],
                _ => [2, 2],
            };
            Self { shape, gathered, lanes, blocks, n_matrices }
        };
        let n_blocks = |tiles: &Self| {
            let [tile_rows, tile_cols] = tiles.size();
            (N_BLOCKS * n_rows.div_ceil(tile_rows)).saturating_mul(n_cols.div_ceil(tile_cols)).saturating_mul(n_slices)
        };
        // With 4 by 4 matrices beside gathered values, NVIDIA's open compiler (NVK) spills 184 registers, and AMD's has the lowest occupancy there is.
        let large = Some(of_size(4)).filter(|tiles| gathered.is_none() && n_blocks(tiles) >= N_FILLING);
        let tiles = large.unwrap_or_else(|| of_size(2));
        let has_memory = tiles.workgroup_bytes() <= adapter.limits.max_compute_workgroup_storage_size as usize;
        (has_memory && tiles.depth().is_none_or(|depth| depth >= shape.size())).then_some(tiles)
    }

    pub(crate) const fn shape(&self) -> CoopShape {
        self.shape
    }

    /// Rows and columns of a tile.
    pub(crate) fn size(&self) -> [usize; 2] {
        self.blocks.map(|n_blocks| n_blocks * self.n_matrices * self.shape.size())
    }

    /// Indices of K in workgroup memory, of which each invocation gathers four times eight values.
    fn depth(&self) -> Option<usize> {
        self.n_gathered().map(|n| 32 * self.lanes / n)
    }

    /// Rows or columns whose values are gathered.
    fn n_gathered(&self) -> Option<usize> {
        let [n_rows, n_cols] = self.size();
        self.gathered.map(|gathered| match gathered {
            Gathered::Rows => n_rows,
            Gathered::Columns => n_cols,
        })
    }

    /// Two halves of what is gathered, eight values more a row or column than there are, and a matrix of results for each block: at most.
    fn workgroup_bytes(&self) -> usize {
        let halves = self.n_gathered().zip(self.depth()).map_or(0, |(n, depth)| 2 * (n * depth + 8 * n.max(depth)));
        2 * halves + self.shape.results_bytes()
    }

    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let [rows, cols] = self.blocks;
        [("LANES", self.lanes), ("BLOCK_ROWS", rows), ("BLOCK_COLS", cols), ("MATRICES", self.n_matrices)]
            .map(|(name, value)| (name, value as f64))
            .to_vec()
    }

    /// The parts for the size of the matrices.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let patches = self.gathered.map(|_| patches_part(self.shape));
        [matrices_part(self.shape)].into_iter().chain(patches).collect()
    }
}

impl CoopShape {
    /// Whether a device has the invocations of a workgroup, and workgroup memory for the results of its blocks.
    pub(crate) fn fits(self, adapter: &Adapter) -> bool {
        let limits = &adapter.limits;
        MAX_LANES <= limits.max_compute_invocations_per_workgroup as usize
            && self.results_bytes() <= limits.max_compute_workgroup_storage_size as usize
    }

    /// Workgroup memory for a matrix of results of each block.
    const fn results_bytes(self) -> usize {
        4 * N_BLOCKS * self.size() * self.size()
    }
}

/// Gives `SIZE`, and the types of operands and sums of that size.
fn matrices_part(shape: CoopShape) -> Part {
    let n = shape.size();
    let text = format!(
        "const SIZE = {n}u;
alias OfA = coop_mat{n}x{n}<f16, A>;
alias OfB = coop_mat{n}x{n}<f16, B>;
alias Sum = coop_mat{n}x{n}<f32, C>;
"
    );
    Part::own(format!("matrices of {n} by {n}"), text)
}

/// Gives `PATCH`, an element of the workgroup memory `patches`, how many values it has, `WIDTH`, and `put_four`, which stores four of them. One value
/// for matrices of 8 by 8, since Metal loads no matrix by a pointer to vectors.
fn patches_part(shape: CoopShape) -> Part {
    let text = match shape {
        CoopShape::Sixteen => {
            "const WIDTH = 4u;
alias PATCH = vec4<f16>;
fn put_four(at: u32, v: vec4<f16>) { patches[at / 4u] = v; }
"
        }
        CoopShape::Eight => {
            "const WIDTH = 1u;
alias PATCH = f16;
fn put_four(at: u32, v: vec4<f16>) { patches[at] = v.x; patches[at + 1u] = v.y; patches[at + 2u] = v.z; patches[at + 3u] = v.w; }
"
        }
    };
    Part::own("patches", text)
}
