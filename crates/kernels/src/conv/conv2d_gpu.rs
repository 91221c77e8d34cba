//! The dispatches of a convolution and its gradients.

use super::modules;
use super::over_images::{Direction, OverImages};
use super::parts::Parts;
use super::window::window_params;
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::arg::Arg;
use crate::conv::conv_shape::ConvShape;
use crate::dtype::DType;
use crate::error::Error;
use crate::product::coop_tiles::Gathered;
use crate::product::cut::product_workgroups;
use crate::product::epilogue::Epilogue;
use crate::product::form::{CONV2D, CONV2D_GRAD_INPUT, CONV2D_GRAD_WEIGHT, Form, Kind, Problem, Reads};
use crate::product::tile_form::TileForm;
use crate::reduce::map_reduce_module::sum_of_parts;
use crate::shader::binding::Binding;
use crate::shader::dispatch::{Dispatch, MAX_WORKGROUPS};
use crate::shader::module::Module;
use crate::sizes::{check_size, in_u32};

/// The family for the product of a convolution: the one for a [`Matmul`](crate::Matmul) with many columns.
pub(crate) fn family(adapter: &Adapter) -> MatmulFamily {
    MatmulFamily::choose(adapter, usize::MAX)
}

impl ConvShape {
    const fn reads(&self) -> Reads {
        if self.reads_vectors() { Reads::Vectors } else { Reads::Elements }
    }
}

/// `x, weight, [operand], y`, or for the gradient in the input `grad_y, weight, [operand], grad_x`, and scratch of the twin.
pub(crate) fn over_images(
    conv: OverImages<'_>,
    args: Vec<Arg>,
    family: MatmulFamily,
    adapter: &Adapter,
) -> Result<Vec<Dispatch>, Error> {
    Product { conv, args }.dispatches(family, adapter)
}

/// `grad_y, x, grad_weight, parts`.
pub(crate) fn grad_weight(
    shape: &ConvShape,
    parts: Parts,
    args: &[Arg],
    family: MatmulFamily,
    adapter: &Adapter,
) -> Result<Vec<Dispatch>, Error> {
    family.check("conv2d_grad_weight", adapter)?;
    let (y, n_parts) = (shape.y(), parts.n);
    // Channels are in groups of four, so that four neighbouring columns belong to one tap.
    let n_cols = shape.window.n_taps().saturating_mul(shape.x.n_channels.next_multiple_of(4));
    let operands = [args[0].dtype, args[1].dtype];
    let problem = Problem {
        size: [shape.n_out, n_cols],
        depth: y.n_pixels(),
        n_slices: n_parts,
        operands,
        reads: shape.reads(),
        whole: [shape.x.n_channels, shape.n_out, 0],
        kind: Kind::Convolution(Gathered::Columns),
    };
    let form = problem.form(family, adapter);
    let (template, stored) = match form {
        Form::Coop(_) => (&modules::GRAD_WEIGHT_COOP, vec![]),
        _ => (&modules::GRAD_WEIGHT[problem.reads as usize], vec![("GRAD_Y", operands[0]), ("SOURCE", operands[1])]),
    };
    let [tile_rows, tile_cols] = form.tile();
    let [n_row_groups, n_col_groups] = [shape.n_out.div_ceil(tile_rows), n_cols.div_ceil(tile_cols)];
    for (size, found, groups) in [("values of a patch", n_cols, n_col_groups), ("n_out", shape.n_out, n_row_groups)] {
        let is_valid = groups <= MAX_WORKGROUPS as usize;
        check_size("conv2d_grad_weight", (size, found), is_valid, "at most 65535 blocks")?;
    }
    // Cooperative matrices need whole matrices of pixels, other forms rows of pixels.
    let part_pixels = match form {
        Form::Coop(tiles) => y.n_pixels().div_ceil(n_parts).next_multiple_of(tiles.shape.size()),
        _ => parts.n_rows * y.width,
    };
    let TileForm { constants, types } = TileForm::of(&form, problem.reads, adapter, operands);
    let module = template.module_on(adapter, &[stored, types].concat()).with_all(form.main_parts(problem.reads));
    let workgroups = [n_col_groups, n_row_groups, n_parts].map(in_u32);
    let products = Dispatch::new(
        CONV2D_GRAD_WEIGHT.of(&form, problem.reads),
        module.with_all(Epilogue::none().parts(problem.results(&form))),
        workgroups,
    );
    let sizes = [
        ("n_images", shape.x.n_images),
        ("n_channels", shape.x.n_channels),
        ("n_out", shape.n_out),
        // The number of result pixels of a part.
        ("part_pixels", part_pixels),
    ];
    let products = products
        .constants(constants)
        .params(window_params([("source_size", &shape.x), ("result_size", &y)], &shape.window))
        .params(sizes)
        .bind(args, operand_bindings(&form, ["grad_y", "source"], [0, 1]), [Binding::of("parts").named("y")])?;
    let sum = sum_of_parts("kernels.conv2d_grad_weight.sum", [n_parts, shape.n_weights()], args, "grad_weight")?;
    Ok(vec![products, sum])
}

/// Arguments as operands with these names: matrices are loaded from f16, and sources by four channels.
fn operand_bindings(form: &Form, names: [&'static str; 2], args: [usize; 2]) -> [Binding; 2] {
    [0, 1].map(|i| {
        let binding = Binding::at(args[i]).named(names[i]);
        match form {
            Form::Coop(_) => binding.elements(if names[i] == "source" { "vec4<f16>" } else { "f16" }),
            _ => binding,
        }
    })
}

/// A product of patches of `source`, argument 0, with weights, argument 1, into `result`, the one after the epilogue's.
#[derive(Debug)]
struct Product<'a> {
    conv: OverImages<'a>,
    /// The kernel's arguments, as they are stored.
    args: Vec<Arg>,
}

impl Product<'_> {
    fn dispatches(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let OverImages { direction, shape, epilogue } = self.conv;
        let (source, result) = (self.conv.source(), self.conv.result());
        let (kernel, labels) = match direction {
            Direction::Forward => ("conv2d", &CONV2D),
            Direction::Backward => ("conv2d_grad_input", &CONV2D_GRAD_INPUT),
        };
        family.check(kernel, adapter)?;
        let operands = [self.args[0].dtype, self.args[1].dtype];
        let problem = Problem {
            size: [result.n_pixels(), result.n_channels],
            depth: shape.window.n_taps().saturating_mul(source.n_channels),
            n_slices: 1,
            operands,
            reads: shape.reads(),
            whole: [shape.x.n_channels, shape.n_out, 0],
            kind: Kind::Convolution(Gathered::Rows),
        };
        let form = problem.form(family, adapter);
        let [tile_rows, tile_cols] = form.tile();
        // In the backward pass, the pixels of one phase are read and written a stride apart.
        let [stride_y, stride_x] = if direction == Direction::Backward { shape.window.stride } else { [1, 1] };
        let n_pixels = result.n_images * result.height.div_ceil(stride_y) * result.width.div_ceil(stride_x);
        // Phases beyond the image's height or width have no pixels.
        let n_phases = stride_y.min(result.height) * stride_x;
        let n_row_groups = n_pixels.div_ceil(tile_rows);
        let n_col_groups = result.n_channels.div_ceil(tile_cols);
        let workgroups = product_workgroups(kernel, result.n_channels, n_col_groups, n_row_groups.saturating_mul(n_phases))?;

        let tiles = TileForm::of(&form, problem.reads, adapter, operands);
        let module = self.module(&form, &problem, &tiles, adapter);
        let sizes = [
            ("n_images", source.n_images),
            // The channels of the source: together with the taps, the K dimension.
            ("n_channels", source.n_channels),
            ("n_cols", result.n_channels),
            // The number of row groups of the product that a phase has.
            ("n_row_groups", n_row_groups),
            ("n_phases", n_phases),
        ];
        let reads = operand_bindings(&form, ["source", "weight"], [0, 1]).into_iter();
        let dispatch = Dispatch::new(labels.of(&form, problem.reads), module, workgroups)
            .constants(tiles.constants)
            .constants(epilogue.constants())
            .constants([("GRAD", f64::from(u8::from(direction == Direction::Backward)))])
            .params(window_params([("source_size", &source), ("result_size", &result)], &shape.window))
            .params(sizes)
            .bind(&self.args, reads.chain(epilogue.bindings()), [Binding::at(self.conv.result_arg()).named("y")])?;
        Ok(vec![dispatch])
    }

    fn module(&self, form: &Form, problem: &Problem, tiles: &TileForm, adapter: &Adapter) -> Module {
        let is_coop = matches!(form, Form::Coop(_));
        let template = if is_coop { &modules::CONV2D_COOP } else { &modules::CONV2D[problem.reads as usize] };
        let epilogue = self.conv.epilogue;
        let operands = [("SOURCE", problem.operands[0]), ("WEIGHT", problem.operands[1])];
        let types: Vec<(&str, DType)> = operands
            .into_iter()
            .filter(|_| !is_coop)
            .chain(epilogue.stored_operand(&self.args))
            .chain([("Y", self.args[self.conv.result_arg()].dtype)])
            .chain(tiles.types.iter().copied())
            .collect();
        let module = template.module_on(adapter, &types).with_all(form.main_parts(problem.reads));
        module.with_all(epilogue.parts(problem.results(form)))
    }
}
