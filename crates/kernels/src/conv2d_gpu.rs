//! Which dispatches a convolution and its gradients are on an adapter.

use crate::window::image_params;
use crate::{
    Adapter, Conv2d, Conv2dGradInput, Conv2dGradWeight, ConvShape, Dispatch, Epilogue, Error, Images, MAX_WORKGROUPS,
    MatmulFamily, fold_workgroups,
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
    n_rows: usize,
    n_cols: usize,
}

const PLAIN: Module = Module { label: "kernels.conv2d", wgsl: include_str!("wgsl/conv2d.wgsl"), n_rows: 8, n_cols: 16 };
const DIRECT: Module =
    Module { label: "kernels.conv2d.direct", wgsl: include_str!("wgsl/conv2d_direct.wgsl"), n_rows: 8, n_cols: 64 };
const TILED: Module =
    Module { label: "kernels.conv2d.tiled", wgsl: include_str!("wgsl/conv2d_tiled.wgsl"), n_rows: 64, n_cols: 64 };
const WEIGHT: Module =
    Module { label: "kernels.conv2d_grad_weight", wgsl: include_str!("wgsl/conv2d_grad_weight.wgsl"), n_rows: 8, n_cols: 16 };
const WEIGHT_TILED: Module = Module {
    label: "kernels.conv2d_grad_weight.tiled",
    wgsl: include_str!("wgsl/conv2d_grad_weight_tiled.wgsl"),
    n_rows: 64,
    n_cols: 64,
};

/// `x, weight, [bias], y, weight_turned`.
pub(crate) fn forward(kernel: &Conv2d, family: MatmulFamily) -> Result<Vec<Dispatch>, Error> {
    let ConvShape { x, n_out, .. } = kernel.shape;
    let y_arg = 2 + usize::from(kernel.epilogue.code() != 0);
    let turn = Dispatch {
        label: "kernels.conv2d.turn",
        wgsl: include_str!("wgsl/matmul_transpose.wgsl"),
        entry: "main",
        constants: vec![],
        types: vec![],
        params: bytemuck::cast_slice(&[n_out as u32, kernel.shape.n_patch() as u32, 0, 0]).to_vec(),
        reads: vec![1],
        writes: vec![y_arg + 1],
        workgroups: fold_workgroups("conv2d", kernel.shape.n_weights().div_ceil(64))?,
    };
    let product =
        Product { kernel: "conv2d", shape: &kernel.shape, source: x, result: kernel.shape.y(), epilogue: kernel.epilogue, y_arg };
    Ok(vec![turn, product.dispatch(family, Direction::Forward)?])
}

/// `dy, weight, [output], dx, weight_turned`.
pub(crate) fn grad_input(kernel: &Conv2dGradInput, family: MatmulFamily) -> Result<Vec<Dispatch>, Error> {
    let ConvShape { x, n_out, window } = kernel.shape;
    let dx_arg = 2 + usize::from(kernel.epilogue.code() != 0);
    let turn = Dispatch {
        label: "kernels.conv2d_grad_input.turn",
        wgsl: include_str!("wgsl/conv2d_grad_input_turn.wgsl"),
        entry: "main",
        constants: vec![],
        types: vec![],
        params: bytemuck::cast_slice(&[n_out as u32, window.n_taps() as u32, x.n_channels as u32, 0]).to_vec(),
        reads: vec![1],
        writes: vec![dx_arg + 1],
        workgroups: fold_workgroups("conv2d_grad_input", kernel.shape.n_weights().div_ceil(64))?,
    };
    let (source, epilogue) = (kernel.shape.y(), kernel.epilogue);
    let product = Product { kernel: "conv2d_grad_input", shape: &kernel.shape, source, result: x, epilogue, y_arg: dx_arg };
    Ok(vec![turn, product.dispatch(family, Direction::Backward)?])
}

/// `dy, x, dw, parts`.
pub(crate) fn grad_weight(kernel: &Conv2dGradWeight, family: MatmulFamily) -> Result<Vec<Dispatch>, Error> {
    let shape = &kernel.shape;
    let (y, n_parts) = (shape.y(), kernel.n_parts());
    let module = if family == MatmulFamily::Tiled { &WEIGHT_TILED } else { &WEIGHT };
    let [n_col_groups, n_out_groups] = [shape.n_patch().div_ceil(module.n_cols), shape.n_out.div_ceil(module.n_rows)];
    for (size, found, groups) in [("values of a patch", shape.n_patch(), n_col_groups), ("n_out", shape.n_out, n_out_groups)] {
        if groups > MAX_WORKGROUPS as usize {
            return Err(Error::Size { kernel: "conv2d_grad_weight", size, found, expected: "at most 65535 blocks" });
        }
    }
    let sizes = [shape.x.n_images, shape.x.n_channels, shape.n_out, kernel.part_rows()];
    let products = Dispatch {
        label: module.label,
        wgsl: module.wgsl,
        entry: "main",
        constants: vec![],
        types: vec![],
        params: image_params(&shape.x, &y, &shape.window, &sizes),
        reads: vec![0, 1],
        writes: vec![3],
        workgroups: [n_col_groups as u32, n_out_groups as u32, n_parts as u32],
    };
    let sum = Dispatch {
        label: "kernels.conv2d_grad_weight.sum",
        wgsl: include_str!("wgsl/column_sum.wgsl"),
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

/// A product of patches of `source` with the turned weights, argument `y_arg + 1`, into argument `y_arg`.
struct Product<'a> {
    kernel: &'static str,
    shape: &'a ConvShape,
    source: Images,
    result: Images,
    epilogue: Epilogue,
    y_arg: usize,
}

impl Product<'_> {
    fn dispatch(&self, family: MatmulFamily, direction: Direction) -> Result<Dispatch, Error> {
        let Self { shape, source, result, y_arg, .. } = *self;
        let vectors = source.n_channels.is_multiple_of(4) && result.n_channels.is_multiple_of(4);
        let module = match family {
            MatmulFamily::Tiled => &TILED,
            _ if vectors => &DIRECT,
            _ => &PLAIN,
        };
        // Backward, the pixels of one phase are read and written a stride apart.
        let [stride_y, stride_x] = if direction == Direction::Backward { shape.window.stride } else { [1, 1] };
        let n_pixels = result.n_images * result.height.div_ceil(stride_y) * result.width.div_ceil(stride_x);
        // Phases beyond the image's height or width have no pixels.
        let n_phases = stride_y.min(result.height) * stride_x;
        let n_row_groups = n_pixels.div_ceil(module.n_rows);
        let n_groups = n_row_groups.saturating_mul(n_phases);
        let n_col_groups = result.n_channels.div_ceil(module.n_cols);
        let max = MAX_WORKGROUPS as usize;
        if n_col_groups > max {
            let found = result.n_channels;
            return Err(Error::Size { kernel: self.kernel, size: "channels", found, expected: "at most 65535 column blocks" });
        }
        let z = n_groups.div_ceil(max);
        if z > max {
            let expected = "at most 65535 * 65535";
            return Err(Error::Size { kernel: self.kernel, size: "number of row blocks", found: n_groups, expected });
        }
        let mut constants = self.epilogue.activation().constants();
        constants.push(("EPILOGUE", f64::from(self.epilogue.code())));
        constants.push(("GRAD", f64::from(u8::from(direction == Direction::Backward))));
        // A binding that is not used has to be filled too.
        let fused = if self.epilogue.code() != 0 { 2 } else { y_arg + 1 };
        let sizes = [source.n_images, source.n_channels, result.n_channels, n_row_groups, n_phases];
        Ok(Dispatch {
            label: module.label,
            wgsl: module.wgsl,
            entry: "main",
            constants,
            types: vec![],
            params: image_params(&source, &result, &shape.window, &sizes),
            reads: vec![0, y_arg + 1, fused],
            writes: vec![y_arg],
            workgroups: [n_col_groups as u32, n_groups.div_ceil(z) as u32, z as u32],
        })
    }
}
