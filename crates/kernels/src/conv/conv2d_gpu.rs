//! Which dispatches a convolution and its gradients are on an adapter.

use std::sync::LazyLock;

use super::window::image_params;
use crate::product::coop_tiles::{CoopTiles, for_eight};
use crate::product::sliced_product::halves;
use crate::product::tile_form::TileForm;
use crate::product::tiles::product_workgroups;
use crate::{
    Adapter, Conv2d, Conv2dGradInput, Conv2dGradWeight, ConvShape, CoopShape, DType, Dispatch, Epilogue, Error, Images,
    MAX_WORKGROUPS, MatmulFamily, Tiles, fold_workgroups,
};

/// The family for the product of a convolution: that of a [`Matmul`](crate::Matmul) of many columns.
///
/// Convolutions often have few. But a group of the direct form has 8 lanes, a quarter of what hardware runs together, so there a tile is taken
/// whose columns are in part empty.
pub(crate) fn family(adapter: &Adapter) -> MatmulFamily {
    MatmulFamily::choose(adapter, usize::MAX)
}

/// A module for implicit products, and the rows and columns one of its workgroups computes.
struct Module {
    label: &'static str,
    wgsl: &'static str,
    size: [usize; 2],
    /// Those that say so.
    constants: Vec<(&'static str, f64)>,
    tile_types: Vec<(&'static str, DType)>,
    /// Whether it reads its operands as they are stored, which is f16.
    is_coop: bool,
}

impl Module {
    fn new(label: &'static str, wgsl: &'static str, size: [usize; 2]) -> Self {
        Self { label, wgsl, size, constants: Vec::new(), tile_types: Vec::new(), is_coop: false }
    }

    fn tiled(label: &'static str, wgsl: &'static str, tiles: Tiles, adapter: &Adapter, operands: [DType; 2]) -> Self {
        let TileForm { constants, types } = TileForm::new(adapter, operands, tiles);
        Self { constants, tile_types: types, ..Self::new(label, wgsl, tiles.size()) }
    }

    fn coop(label: &'static str, wgsl: &'static str, tiles: CoopTiles, size: [usize; 2]) -> Self {
        Self { constants: tiles.constants(), is_coop: true, ..Self::new(label, wgsl, size) }
    }
}

/// `x, weight, [bias], y, weight_turned`.
pub(crate) fn forward(
    kernel: &Conv2d,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Result<Vec<Dispatch>, Error> {
    family.check("conv2d", adapter)?;
    let Conv2d { shape, epilogue } = *kernel;
    let (source, result) = (shape.x, shape.y());
    let product = Product { kernel: "conv2d", direction: Direction::Forward, shape, source, result, epilogue, dtypes };
    let turn = || {
        let in_blocks = shape.n_out.is_multiple_of(4) && shape.n_patch().is_multiple_of(4);
        let (wgsl, n_lanes) = if product.dtype(1).is_half() && in_blocks {
            (include_str!("../product/matmul_transpose_blocks.wgsl"), shape.n_weights() / 16)
        } else {
            (include_str!("../product/matmul_transpose.wgsl"), shape.n_weights())
        };
        Ok(Dispatch {
            label: "kernels.conv2d.turn",
            wgsl,
            entry: "main",
            constants: vec![],
            types: halves([("X", product.dtype(1))]),
            params: bytemuck::cast_slice(&[shape.n_out as u32, shape.n_patch() as u32, 0, 0]).to_vec(),
            reads: vec![1],
            writes: vec![product.turned_arg()],
            workgroups: fold_workgroups("conv2d", n_lanes.div_ceil(64))?,
        })
    };
    product.dispatches(family, adapter, turn)
}

/// `grad_y, weight, [output], grad_x, weight_turned`.
pub(crate) fn grad_input(
    kernel: &Conv2dGradInput,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Result<Vec<Dispatch>, Error> {
    family.check("conv2d_grad_input", adapter)?;
    let Conv2dGradInput { shape, epilogue } = *kernel;
    let (source, result) = (shape.y(), shape.x);
    let product =
        Product { kernel: "conv2d_grad_input", direction: Direction::Backward, shape, source, result, epilogue, dtypes };
    let turn = || {
        let sizes = [shape.n_out, shape.window.n_taps(), shape.x.n_channels, 0].map(|size| size as u32);
        Ok(Dispatch {
            label: "kernels.conv2d_grad_input.turn",
            wgsl: include_str!("conv2d_grad_input_turn.wgsl"),
            entry: "main",
            constants: vec![],
            types: halves([("WEIGHT", product.dtype(1))]),
            params: bytemuck::cast_slice(&sizes).to_vec(),
            reads: vec![1],
            writes: vec![product.turned_arg()],
            workgroups: fold_workgroups("conv2d_grad_input", shape.n_weights().div_ceil(64))?,
        })
    };
    product.dispatches(family, adapter, turn)
}

/// `grad_y, x, grad_weight, parts`.
pub(crate) fn grad_weight(
    kernel: &Conv2dGradWeight,
    family: MatmulFamily,
    adapter: &Adapter,
    dtypes: &[DType],
) -> Result<Vec<Dispatch>, Error> {
    family.check("conv2d_grad_weight", adapter)?;
    let shape = &kernel.shape;
    let dtype = |arg: usize| dtypes.get(arg).copied().unwrap_or(DType::F32);
    let (y, n_parts) = (shape.y(), kernel.n_parts());
    let operands = [dtype(0), dtype(1)];
    let coop =
        CoopTiles::choose(family, adapter, operands, [shape.x.n_channels, shape.n_out], [shape.n_patch(), shape.n_out], n_parts)
            .filter(|tiles| y.n_pixels() >= tiles.shape.size());
    let tiles = family.tiles(adapter, shape.n_out, shape.n_patch(), n_parts);
    let module = match (coop, tiles) {
        (Some(tiles), _) => {
            let [n_cols, n_out] = tiles.size();
            Module::coop("kernels.conv2d_grad_weight.coop", grad_weight_coop_wgsl(tiles.shape), tiles, [n_out, n_cols])
        }
        (None, Some(tiles)) if shape.reads_vectors() => {
            let wgsl = include_str!("conv2d_grad_weight_tiled.wgsl");
            Module::tiled("kernels.conv2d_grad_weight.tiled", wgsl, tiles, adapter, operands)
        }
        (None, Some(_)) => {
            let wgsl = include_str!("conv2d_grad_weight_tiled_any.wgsl");
            Module::new("kernels.conv2d_grad_weight.tiled_any", wgsl, [64, 64])
        }
        (None, None) if shape.reads_vectors() => {
            let wgsl = include_str!("conv2d_grad_weight_direct.wgsl");
            Module::new("kernels.conv2d_grad_weight.direct", wgsl, [8, 64])
        }
        (None, None) => Module::new("kernels.conv2d_grad_weight", include_str!("conv2d_grad_weight.wgsl"), [8, 16]),
    };
    let [n_out_groups, n_col_groups] = [shape.n_out.div_ceil(module.size[0]), shape.n_patch().div_ceil(module.size[1])];
    for (size, found, groups) in [("values of a patch", shape.n_patch(), n_col_groups), ("n_out", shape.n_out, n_out_groups)] {
        if groups > MAX_WORKGROUPS as usize {
            return Err(Error::Size { kernel: "conv2d_grad_weight", size, found, expected: "at most 65535 blocks" });
        }
    }
    // On the units runs are of pixels, whole matrices of them, else of rows of pixels.
    let part = coop.map_or(kernel.part_rows(), |tiles| y.n_pixels().div_ceil(n_parts).next_multiple_of(tiles.shape.size()));
    let sizes = [shape.x.n_images, shape.x.n_channels, shape.n_out, part];
    let swapped = [("GRAD_Y", dtype(0)), ("X", dtype(1))].into_iter().filter(|_| !module.is_coop);
    let products = Dispatch {
        label: module.label,
        wgsl: module.wgsl,
        entry: "main",
        constants: module.constants,
        types: halves(swapped).into_iter().chain(module.tile_types).collect(),
        params: image_params(&shape.x, &y, &shape.window, &sizes),
        reads: vec![0, 1],
        writes: vec![3],
        workgroups: [n_col_groups as u32, n_out_groups as u32, n_parts as u32],
    };
    let sum = Dispatch {
        label: "kernels.conv2d_grad_weight.sum",
        wgsl: include_str!("../reduce/column_sum.wgsl"),
        entry: "add_parts",
        constants: vec![],
        types: vec![],
        params: bytemuck::cast_slice(&[0, shape.n_weights() as u32, n_parts as u32, 0]).to_vec(),
        reads: vec![3],
        writes: vec![2],
        workgroups: fold_workgroups("conv2d_grad_weight", shape.n_weights().div_ceil(64))?,
    };
    Ok(vec![products, sum])
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Backward,
}

/// A product of patches of `source`, argument 0, with the weights, argument 1, into `result`, the argument behind that of the epilogue.
struct Product<'a> {
    kernel: &'static str,
    direction: Direction,
    shape: ConvShape,
    source: Images,
    result: Images,
    epilogue: Epilogue,
    /// How the arguments are stored; those behind the last are f32.
    dtypes: &'a [DType],
}

impl Product<'_> {
    fn dtype(&self, arg: usize) -> DType {
        self.dtypes.get(arg).copied().unwrap_or(DType::F32)
    }

    fn result_arg(&self) -> usize {
        2 + usize::from(self.epilogue.code() != 0)
    }

    /// Where the turned weights are.
    fn turned_arg(&self) -> usize {
        self.result_arg() + 1
    }

    /// The product, behind a dispatch that turns the weights where the family's module does not read them as they are.
    fn dispatches(
        &self,
        family: MatmulFamily,
        adapter: &Adapter,
        turn: impl Fn() -> Result<Dispatch, Error>,
    ) -> Result<Vec<Dispatch>, Error> {
        let (n_rows, n_cols) = (self.result.n_pixels(), self.result.n_channels);
        let turned = self.turned_arg();
        if let Some(tiles) = CoopTiles::choose(
            family,
            adapter,
            [self.dtype(0), self.dtype(1)],
            [self.shape.x.n_channels, self.shape.n_out],
            [n_rows, n_cols],
            1,
        ) {
            return Ok(vec![self.dispatch(Module::coop("kernels.conv2d.coop", coop_wgsl(tiles.shape), tiles, tiles.size()), 1)?]);
        }
        let (module, weight) = match family.tiles(adapter, n_rows, n_cols, 1) {
            Some(tiles) if self.shape.reads_vectors() => {
                let operands = [self.dtype(0), self.dtype(1)];
                (Module::tiled("kernels.conv2d.tiled", include_str!("conv2d_tiled.wgsl"), tiles, adapter, operands), 1)
            }
            Some(_) => (Module::new("kernels.conv2d.tiled_any", include_str!("conv2d_tiled_any.wgsl"), [64, 64]), turned),
            None if self.shape.reads_vectors() => {
                (Module::new("kernels.conv2d.direct", include_str!("conv2d_direct.wgsl"), [8, 64]), turned)
            }
            None => (Module::new("kernels.conv2d", include_str!("conv2d.wgsl"), [8, 16]), turned),
        };
        let product = self.dispatch(module, weight)?;
        Ok(if weight == turned { vec![turn()?, product] } else { vec![product] })
    }

    fn dispatch(&self, module: Module, weight: usize) -> Result<Dispatch, Error> {
        let Self { direction, shape, source, result, .. } = *self;
        // Backward, the pixels of one phase are read and written a stride apart.
        let [stride_y, stride_x] = if direction == Direction::Backward { shape.window.stride } else { [1, 1] };
        let n_pixels = result.n_images * result.height.div_ceil(stride_y) * result.width.div_ceil(stride_x);
        // Phases beyond the image's height or width have no pixels.
        let n_phases = stride_y.min(result.height) * stride_x;
        let n_row_groups = n_pixels.div_ceil(module.size[0]);
        let n_col_groups = result.n_channels.div_ceil(module.size[1]);
        let mut constants = module.constants;
        constants.extend(self.epilogue.activation().constants());
        constants.push(("EPILOGUE", f64::from(self.epilogue.code())));
        constants.push(("GRAD", f64::from(u8::from(direction == Direction::Backward))));
        // A binding that is not used has to be filled too.
        let fused = if self.epilogue.code() != 0 { 2 } else { weight };
        let groups = [("SOURCE", 0), ("WEIGHT", weight), ("FUSED", fused), ("Y", self.result_arg())];
        let stored = groups.into_iter().skip(if module.is_coop { 2 } else { 0 });
        let types = halves(stored.map(|(group, arg)| (group, self.dtype(arg)))).into_iter().chain(module.tile_types).collect();
        let sizes = [source.n_images, source.n_channels, result.n_channels, n_row_groups, n_phases];
        let n_groups = n_row_groups.saturating_mul(n_phases);
        Ok(Dispatch {
            label: module.label,
            wgsl: module.wgsl,
            entry: "main",
            constants,
            types,
            params: image_params(&source, &result, &shape.window, &sizes),
            reads: vec![0, weight, fused],
            writes: vec![self.result_arg()],
            workgroups: product_workgroups(self.kernel, result.n_channels, n_col_groups, n_groups)?,
        })
    }
}

/// The module of the forward product and the gradient of the input on matrix units.
fn coop_wgsl(shape: CoopShape) -> &'static str {
    static EIGHT: LazyLock<String> = LazyLock::new(|| for_eight(include_str!("conv2d_coop.wgsl")));
    match shape {
        CoopShape::Eight => &EIGHT,
        CoopShape::Sixteen => include_str!("conv2d_coop.wgsl"),
    }
}

/// That of the gradient of the weights.
fn grad_weight_coop_wgsl(shape: CoopShape) -> &'static str {
    static EIGHT: LazyLock<String> = LazyLock::new(|| for_eight(include_str!("conv2d_grad_weight_coop.wgsl")));
    match shape {
        CoopShape::Eight => &EIGHT,
        CoopShape::Sixteen => include_str!("conv2d_grad_weight_coop.wgsl"),
    }
}
