use crate::{Adapter, CoopShape, DType, MatmulFamily, Part};

/// How a convolution or a gradient on tensor cores is cut into groups: `conv2d_coop.wgsl`, `conv2d_grad_weight_coop.wgsl`.
///
/// One operand of the product is gathered into workgroup memory, the patches; the other is loaded where it lies. Pairs are in this order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoopTiles {
    pub(crate) shape: CoopShape,
    /// Invocations of a group: those of four subgroups, but 128 at most.
    lanes: usize,
    /// Blocks of a tile along what is gathered and along what is loaded: four.
    blocks: [usize; 2],
    /// Matrices of a block along either side.
    n_matrices: usize,
}

const MAX_LANES: usize = 128;
/// Invocations of a subgroup of most cards that have tensor cores, where an adapter lists a range.
const USUAL_LANES: u32 = 32;
/// Subgroups that fill a card: four for each processor of the largest ones.
const N_FILLING: usize = 512;

impl CoopTiles {
    /// The cut of `n_slices` products of so many results along either operand, where the family is that of tensor cores and those of `adapter` can compute
    /// them: for operands in f16 whose channels are multiples of their size, where a group has the workgroup memory.
    pub(crate) fn choose(
        family: MatmulFamily,
        adapter: &Adapter,
        operands: [DType; 2],
        channels: [usize; 2],
        [n_gathered, n_loaded]: [usize; 2],
        n_slices: usize,
    ) -> Option<Self> {
        let shape = adapter.coop.filter(|_| family == MatmulFamily::Coop && operands == [DType::F16; 2])?;
        let usual = USUAL_LANES.min(adapter.subgroup_max_size).max(adapter.subgroup_min_size).max(1);
        let lanes = (4 * usual as usize).min(MAX_LANES);
        let cut = |n_matrices: usize| {
            // Of a tile that is long along what is gathered few invocations can fetch too few places.
            let is_wide = n_loaded > n_matrices * shape.size() || lanes < MAX_LANES;
            Self { shape, lanes, blocks: if is_wide { [2, 2] } else { [4, 1] }, n_matrices }
        };
        let fills = |tiles: &Self| {
            let [gathered, loaded] = tiles.size();
            let n_tiles = n_gathered.div_ceil(gathered).saturating_mul(n_loaded.div_ceil(loaded));
            n_tiles.saturating_mul(4 * n_slices) >= N_FILLING
        };
        let fits = |tiles: &Self| {
            tiles.depth() >= shape.size() && tiles.workgroup_bytes() <= adapter.limits.max_compute_workgroup_storage_size as usize
        };
        let tiles = Some(cut(4)).filter(|tiles| fills(tiles) && fits(tiles)).unwrap_or_else(|| cut(2));
        let is_whole = channels.iter().all(|n| n.is_multiple_of(shape.size()));
        (is_whole && fits(&tiles)).then_some(tiles)
    }

    /// Results of a tile along what is gathered and along what is loaded.
    pub(crate) fn size(&self) -> [usize; 2] {
        self.blocks.map(|n_blocks| n_blocks * self.n_matrices * self.shape.size())
    }

    /// Places of the sum in workgroup memory, of which each invocation gathers four times eight values.
    fn depth(&self) -> usize {
        32 * self.lanes / self.size()[0]
    }

    /// Two halves of the patches, eight values more a row or column than there are, and a matrix of results for each block: at most.
    fn workgroup_bytes(&self) -> usize {
        let (gathered, depth) = (self.size()[0], self.depth());
        let patches = 2 * (gathered * depth + 8 * gathered.max(depth));
        2 * patches + 4 * self.blocks[0] * self.blocks[1] * self.shape.size().pow(2)
    }

    pub(crate) fn constants(&self) -> Vec<(&'static str, f64)> {
        let [gathered, loaded] = self.blocks;
        [("LANES", self.lanes), ("GATHERED_BLOCKS", gathered), ("LOADED_BLOCKS", loaded), ("MATRICES", self.n_matrices)]
            .map(|(name, value)| (name, value as f64))
            .to_vec()
    }
}

/// Gives `SIZE`, and the types of operands and sums of that size.
pub(crate) fn matrices_part(shape: CoopShape) -> Part {
    let n = shape.size();
    let text = format!(
        "const SIZE = {n}u;
alias OfA = coop_mat{n}x{n}<f16, A>;
alias OfB = coop_mat{n}x{n}<f16, B>;
alias Sum = coop_mat{n}x{n}<f32, C>;
"
    );
    Part { name: format!("matrices of {n} by {n}").into(), text: text.into() }
}

/// Gives `PATCH`, an element of the workgroup memory `patches`, how many values it has, `WIDTH`, and `put_four`, which stores four of them. One value
/// for matrices of 8 by 8, since Metal loads no matrix by a pointer to vectors.
pub(crate) fn patches_part(shape: CoopShape) -> Part {
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
    Part { name: "patches".into(), text: text.into() }
}
