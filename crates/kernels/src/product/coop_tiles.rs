use crate::adapter::adapter::Adapter;
use crate::adapter::coop_shape::CoopShape;
use crate::shader::module::Part;

/// How a product on cooperative matrices is divided into workgroups: `main_coop.wgsl`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoopTiles {
    pub(crate) shape: CoopShape,
    gathered: Option<Gathered>,
    /// Invocations of a workgroup: those of four subgroups, but at most 128.
    invocations: usize,
    /// Blocks of a tile along the rows and along the columns, four in total; each subgroup has one.
    blocks: [usize; 2],
    /// Matrices along each side of a block.
    n_matrices: usize,
}

/// Which operand is gathered into workgroup memory; others are loaded in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gathered {
    /// The operand of the result's rows.
    Rows,
    /// The operand of the result's columns.
    Columns,
}

const MAX_INVOCATIONS: usize = 128;
/// Invocations of a subgroup on most GPUs with tensor cores, used if an adapter reports a range.
const USUAL_SUBGROUP_SIZE: u32 = 32;
/// Blocks of a tile.
const N_BLOCKS: usize = 4;
/// The number of blocks that fill a GPU: four for each processor of the largest ones.
const N_FILLING: usize = 512;

impl CoopTiles {
    /// The tiles for `n_slices` products of `n_rows` by `n_cols` results, if workgroups on `adapter` have enough memory.
    pub(crate) fn choose(
        shape: CoopShape,
        adapter: &Adapter,
        gathered: Option<Gathered>,
        [n_rows, n_cols]: [usize; 2],
        n_slices: usize,
    ) -> Option<Self> {
        let usual = USUAL_SUBGROUP_SIZE.min(adapter.subgroup_max_size).max(adapter.subgroup_min_size).max(1);
        let invocations = (N_BLOCKS * usual as usize).min(MAX_INVOCATIONS);
        let of_size = |n_matrices: usize| {
            let block = n_matrices * shape.size();
            // In a tile that is long along the gathered dimension, few invocations can fetch only few K indices.
            let may_be_long = gathered.is_none() || invocations == MAX_INVOCATIONS;
            let blocks = match gathered {
                _ if !may_be_long => [2, 2],
                Some(Gathered::Columns) if n_rows <= block => [1, 4],
                None | Some(Gathered::Rows) if n_cols <= block => [4, 1],
                None if n_rows <= block => [1, 4],
                _ => [2, 2],
            };
            Self { shape, gathered, invocations, blocks, n_matrices }
        };
        let n_blocks = |tiles: &Self| {
            let [tile_rows, tile_cols] = tiles.size();
            (N_BLOCKS * n_rows.div_ceil(tile_rows)).saturating_mul(n_cols.div_ceil(tile_cols)).saturating_mul(n_slices)
        };
        // With 4 by 4 matrices and gathered values, NVIDIA's open-source compiler (NVK) spills 184 registers, and AMD's compiles
        // to the lowest possible occupancy.
        let large = Some(of_size(4)).filter(|tiles| gathered.is_none() && n_blocks(tiles) >= N_FILLING);
        let tiles = large.unwrap_or_else(|| of_size(2));
        let has_memory = tiles.workgroup_bytes() <= adapter.limits.max_compute_workgroup_storage_size as usize;
        (has_memory && tiles.depth().is_none_or(|depth| depth >= shape.size())).then_some(tiles)
    }

    /// Rows and columns of a tile.
    pub(crate) fn size(&self) -> [usize; 2] {
        self.blocks.map(|n_blocks| n_blocks * self.n_matrices * self.shape.size())
    }

    /// K indices in workgroup memory, for which each invocation gathers four groups of eight values.
    fn depth(&self) -> Option<usize> {
        self.n_gathered().map(|n| 32 * self.invocations / n)
    }

    /// The number of rows or columns whose values are gathered.
    fn n_gathered(&self) -> Option<usize> {
        let [n_rows, n_cols] = self.size();
        self.gathered.map(|gathered| match gathered {
            Gathered::Rows => n_rows,
            Gathered::Columns => n_cols,
        })
    }

    /// The maximum workgroup memory: two halves of gathered values, with eight values of padding per row or column, and a matrix
    /// of results for each block.
    fn workgroup_bytes(&self) -> usize {
        let halves = self.n_gathered().zip(self.depth()).map_or(0, |(n, depth)| 2 * (n * depth + 8 * n.max(depth)));
        2 * halves + self.shape.results_bytes()
    }

    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let [rows, cols] = self.blocks;
        [("INVOCATIONS", self.invocations), ("BLOCK_ROWS", rows), ("BLOCK_COLS", cols), ("MATRICES", self.n_matrices)]
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
    /// Whether a device supports the invocations of a workgroup, and has workgroup memory for the results of its blocks.
    pub(crate) fn fits(self, adapter: &Adapter) -> bool {
        let limits = &adapter.limits;
        MAX_INVOCATIONS <= limits.max_compute_invocations_per_workgroup as usize
            && self.results_bytes() <= limits.max_compute_workgroup_storage_size as usize
    }

    /// Workgroup memory for one matrix of results per block.
    const fn results_bytes(self) -> usize {
        4 * N_BLOCKS * self.size() * self.size()
    }
}

/// Declares `SIZE`, and the types of operands and sums of that size.
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

/// Declares `PATCH`, an element of the workgroup memory `patches`; `WIDTH`, the number of its values; and `put_four`, which
/// stores four values. `WIDTH` is 1 for matrices of 8 by 8, since Metal cannot load a matrix through a pointer to vectors.
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
