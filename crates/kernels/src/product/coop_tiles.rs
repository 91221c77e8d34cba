use crate::{Adapter, CoopShape, DType, MatmulFamily, Part};

/// How a convolution or a gradient on tensor cores is cut into workgroups: `conv2d_coop.wgsl`, `conv2d_grad_weight_coop.wgsl`.
///
/// One operand of the product is gathered into workgroup memory, the patches; the other is loaded from where it is stored. Pairs are in this order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct CoopTiles {
    pub(crate) shape: CoopShape,
    /// Invocations of a workgroup: those of four subgroups, but 128 at most.
    lanes: usize,
    /// Blocks of a tile along what is gathered and along what is loaded: four.
    blocks: [usize; 2],
}

const MAX_LANES: usize = 128;
/// Invocations of a subgroup of most cards that have tensor cores, where an adapter lists a range.
const USUAL_LANES: u32 = 32;
/// Matrices of a block along either side. With 4, NVIDIA's open compiler (NVK) spills 184 registers, and AMD's has the lowest occupancy there is.
const N_MATRICES: usize = 2;

impl CoopTiles {
    /// The cut of a product with `n_loaded` results along what is loaded, where the family is that of tensor cores and those of `adapter` can compute
    /// it: for operands in f16 whose channels are multiples of their size, where a workgroup has the memory.
    pub(crate) fn choose(
        family: MatmulFamily,
        adapter: &Adapter,
        operands: [DType; 2],
        channels: [usize; 2],
        n_loaded: usize,
    ) -> Option<Self> {
        let shape = adapter.coop.filter(|_| family == MatmulFamily::Coop && operands == [DType::F16; 2])?;
        let usual = USUAL_LANES.min(adapter.subgroup_max_size).max(adapter.subgroup_min_size).max(1);
        let lanes = (4 * usual as usize).min(MAX_LANES);
        // In a tile that is long along what is gathered, few invocations can fetch only few indices of the sum.
        let is_wide = n_loaded > N_MATRICES * shape.size() || lanes < MAX_LANES;
        let tiles = Self { shape, lanes, blocks: if is_wide { [2, 2] } else { [4, 1] } };
        let fits = tiles.depth() >= shape.size()
            && tiles.workgroup_bytes() <= adapter.limits.max_compute_workgroup_storage_size as usize;
        let is_whole = channels.iter().all(|n| n.is_multiple_of(shape.size()));
        (is_whole && fits).then_some(tiles)
    }

    /// Results of a tile along what is gathered and along what is loaded.
    pub(crate) fn size(&self) -> [usize; 2] {
        self.blocks.map(|n_blocks| n_blocks * N_MATRICES * self.shape.size())
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
        [("LANES", self.lanes), ("GATHERED_BLOCKS", gathered), ("LOADED_BLOCKS", loaded)]
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
