//! Which dispatches a convolution and its gradients are on an adapter.

use super::modules;
use super::window::image_params;
use crate::core::stored_types::Template;
use crate::map::map_reduce_module::sum_of_parts;
use crate::product::coop_tiles::{CoopTiles, matrices_part, patches_part};
use crate::product::epilogue::Results;
use crate::product::matmul_gpu::transposition;
use crate::product::tile_form::TileForm;
use crate::product::tiles::{Cut, product_workgroups};
use crate::{
    Adapter, Conv2d, Conv2dGradInput, Conv2dGradWeight, ConvShape, CoopShape, DType, Dispatch, Epilogue, Error, Images,
    MAX_WORKGROUPS, MatmulFamily, Module, Tiles, fold_workgroups,
};

/// The family for the product of a convolution: that of a [`Matmul`](crate::Matmul) of many columns.
///
/// Convolutions often have few. But a group of the direct form has 8 invocations, a quarter of what hardware runs together, so there a tile is taken
/// whose columns are in part empty.
pub(crate) fn family(adapter: &Adapter) -> MatmulFamily {
    MatmulFamily::choose(adapter, usize::MAX)
}

/// A form of the implicit product, and the rows and columns that one of its workgroups computes.
struct Form {
    label: &'static str,
    template: Template,
    results: Results,
    size: [usize; 2],
    constants: Vec<(&'static str, f64)>,
    /// Types beside those of the arguments.
    tile_types: Vec<(&'static str, DType)>,
    /// Those on cooperative matrices read their operands as they are stored, which is f16.
    coop: Option<CoopShape>,
}

impl Form {
    fn new(label: &'static str, template: Template, results: Results, size: [usize; 2]) -> Self {
        Self { label, template, results, size, constants: Vec::new(), tile_types: Vec::new(), coop: None }
    }

    fn tiled(label: &'static str, template: Template, tiles: Tiles, adapter: &Adapter, operands: [DType; 2]) -> Self {
        let TileForm { constants, types } = TileForm::new(adapter, operands, tiles);
        Self { constants, tile_types: types, ..Self::new(label, template, Results::Four, tiles.size()) }
    }

    fn coop(label: &'static str, template: Template, tiles: CoopTiles, size: [usize; 2]) -> Self {
        Self { constants: tiles.constants(), coop: Some(tiles.shape), ..Self::new(label, template, Results::Four, size) }
    }

    /// The module, without an epilogue, over operands and results that are stored as `types` says.
    fn module(&self, adapter: &Adapter, types: impl IntoIterator<Item = (&'static str, DType)>) -> Module {
        let types: Vec<_> = types.into_iter().chain(self.tile_types.iter().copied()).collect();
        let parts = self.coop.map(|shape| [matrices_part(shape), patches_part(shape)]);
        self.template.module_on(adapter, &types).with_all(parts.into_iter().flatten())
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
    let Conv2d { shape, ref epilogue } = *kernel;
    let (source, result) = (shape.x, shape.y());
    let product = Product { kernel: "conv2d", direction: Direction::Forward, shape, source, result, epilogue, dtypes };
    let turn = || {
        let (template, n_lanes) = transposition(shape.n_out, shape.n_patch(), product.dtype(1));
        Ok(Dispatch {
            label: "kernels.conv2d.turn",
            wgsl: template.module_on(adapter, &[("X", product.dtype(1))]),
            entry: "main",
            constants: vec![],
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
    let Conv2dGradInput { shape, ref epilogue } = *kernel;
    let (source, result) = (shape.y(), shape.x);
    let product =
        Product { kernel: "conv2d_grad_input", direction: Direction::Backward, shape, source, result, epilogue, dtypes };
    let turn = || {
        let sizes = [shape.n_out, shape.window.n_taps(), shape.x.n_channels, 0].map(|size| size as u32);
        Ok(Dispatch {
            label: "kernels.conv2d_grad_input.turn",
            wgsl: modules::CONV2D_GRAD_INPUT_TURN.module_on(adapter, &[("WEIGHT", product.dtype(1))]),
            entry: "main",
            constants: vec![],
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
    let coop = CoopTiles::choose(family, adapter, operands, [shape.x.n_channels, shape.n_out], shape.n_out)
        .filter(|tiles| y.n_pixels() >= tiles.shape.size());
    let tiles = family.tiles(adapter, Cut::of(adapter, operands), [shape.n_out, shape.n_patch()], n_parts);
    let form = match (coop, tiles) {
        (Some(tiles), _) => {
            let [n_cols, n_out] = tiles.size();
            Form::coop("kernels.conv2d_grad_weight.coop", modules::CONV2D_GRAD_WEIGHT_COOP, tiles, [n_out, n_cols])
        }
        (None, Some(tiles)) if shape.reads_vectors() => {
            Form::tiled("kernels.conv2d_grad_weight.tiled", modules::CONV2D_GRAD_WEIGHT_TILED, tiles, adapter, operands)
        }
        (None, Some(_)) => {
            let template = modules::CONV2D_GRAD_WEIGHT_TILED_ANY;
            Form::new("kernels.conv2d_grad_weight.tiled_any", template, Results::Two, [64, 64])
        }
        (None, None) if shape.reads_vectors() => {
            Form::new("kernels.conv2d_grad_weight.direct", modules::CONV2D_GRAD_WEIGHT_DIRECT, Results::Four, [8, 64])
        }
        (None, None) => Form::new("kernels.conv2d_grad_weight", modules::CONV2D_GRAD_WEIGHT, Results::Two, [8, 16]),
    };
    let [n_out_groups, n_col_groups] = [shape.n_out.div_ceil(form.size[0]), shape.n_patch().div_ceil(form.size[1])];
    for (size, found, groups) in [("values of a patch", shape.n_patch(), n_col_groups), ("n_out", shape.n_out, n_out_groups)] {
        if groups > MAX_WORKGROUPS as usize {
            return Err(Error::Size { kernel: "conv2d_grad_weight", size, found, expected: "at most 65535 blocks" });
        }
    }
    // On the units runs are of pixels, whole matrices of them, else of rows of pixels.
    let part = coop.map_or(kernel.part_rows(), |tiles| y.n_pixels().div_ceil(n_parts).next_multiple_of(tiles.shape.size()));
    let sizes = [shape.x.n_images, shape.x.n_channels, shape.n_out, part];
    let types = [("GRAD_Y", dtype(0)), ("X", dtype(1))].into_iter().filter(|_| form.coop.is_none());
    let products = Dispatch {
        label: form.label,
        wgsl: form.module(adapter, types),
        entry: "main",
        constants: form.constants,
        params: image_params(&shape.x, &y, &shape.window, &sizes),
        reads: vec![0, 1],
        writes: vec![3],
        workgroups: [n_col_groups as u32, n_out_groups as u32, n_parts as u32],
    };
    let sum = sum_of_parts("kernels.conv2d_grad_weight.sum", [n_parts, shape.n_weights()], 3, 2)?;
    Ok(vec![products, sum])
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    Forward,
    Backward,
}

/// A product of patches of `source`, argument 0, with the weights, argument 1, into `result`, the argument after that of the epilogue.
struct Product<'a> {
    kernel: &'static str,
    direction: Direction,
    shape: ConvShape,
    source: Images,
    result: Images,
    epilogue: &'a Epilogue,
    /// How the arguments are stored; those after the last are f32.
    dtypes: &'a [DType],
}

impl Product<'_> {
    fn dtype(&self, arg: usize) -> DType {
        self.dtypes.get(arg).copied().unwrap_or(DType::F32)
    }

    fn result_arg(&self) -> usize {
        2 + self.epilogue.n_args()
    }

    /// Where the transposed weights are.
    fn turned_arg(&self) -> usize {
        self.result_arg() + 1
    }

    /// The product, after a dispatch that turns the weights where the family's module does not read them as they are.
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
            n_cols,
        ) {
            let form = Form::coop("kernels.conv2d.coop", modules::CONV2D_COOP, tiles, tiles.size());
            return Ok(vec![self.dispatch(form, 1, adapter)?]);
        }
        let (form, weight) = match family.tiles(adapter, Cut::Long, [n_rows, n_cols], 1) {
            Some(tiles) if self.shape.reads_vectors() => {
                let operands = [self.dtype(0), self.dtype(1)];
                (Form::tiled("kernels.conv2d.tiled", modules::CONV2D_TILED, tiles, adapter, operands), 1)
            }
            Some(_) => (Form::new("kernels.conv2d.tiled_any", modules::CONV2D_TILED_ANY, Results::Two, [64, 64]), turned),
            None if self.shape.reads_vectors() => {
                (Form::new("kernels.conv2d.direct", modules::CONV2D_DIRECT, Results::Four, [8, 64]), turned)
            }
            None => (Form::new("kernels.conv2d", modules::CONV2D, Results::Two, [8, 16]), turned),
        };
        let product = self.dispatch(form, weight, adapter)?;
        Ok(if weight == turned { vec![turn()?, product] } else { vec![product] })
    }

    fn dispatch(&self, form: Form, weight: usize, adapter: &Adapter) -> Result<Dispatch, Error> {
        let Self { direction, shape, source, result, .. } = *self;
        // Backward, the pixels of one phase are read and written a stride apart.
        let [stride_y, stride_x] = if direction == Direction::Backward { shape.window.stride } else { [1, 1] };
        let n_pixels = result.n_images * result.height.div_ceil(stride_y) * result.width.div_ceil(stride_x);
        // Phases beyond the image's height or width have no pixels.
        let n_phases = stride_y.min(result.height) * stride_x;
        let n_row_groups = n_pixels.div_ceil(form.size[0]);
        let n_col_groups = result.n_channels.div_ceil(form.size[1]);
        let mut constants = form.constants.clone();
        constants.push(("GRAD", f64::from(u8::from(direction == Direction::Backward))));
        // A binding that is not used has to be filled too.
        let fused = if self.epilogue.operand().is_some() { 2 } else { weight };
        let groups = [("SOURCE", 0), ("WEIGHT", weight), ("FUSED", fused), ("Y", self.result_arg())];
        let types = groups.into_iter().skip(if form.coop.is_some() { 2 } else { 0 }).map(|(group, arg)| (group, self.dtype(arg)));
        let sizes = [source.n_images, source.n_channels, result.n_channels, n_row_groups, n_phases];
        let n_groups = n_row_groups.saturating_mul(n_phases);
        Ok(Dispatch {
            label: form.label,
            wgsl: form.module(adapter, types).with_all(self.epilogue.parts(form.results)),
            entry: "main",
            constants,
            params: image_params(&source, &result, &shape.window, &sizes),
            reads: vec![0, weight, fused],
            writes: vec![self.result_arg()],
            workgroups: product_workgroups(self.kernel, result.n_channels, n_col_groups, n_groups)?,
        })
    }
}
