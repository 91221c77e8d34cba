//! The dispatches of convolutions with groups or dilation and of their gradients.

use super::modules;
use super::over_images::{Direction, OverImages};
use super::parts::Parts;
use super::window::window_params;
use crate::arg::Arg;
use crate::conv::conv_shape::ConvShape;
use crate::conv::window::Images;
use crate::error::Error;
use crate::product::epilogue::Results;
use crate::reduce::map_reduce_module::sum_of_parts;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::param::Param;

/// `x, weight, [operand], y`, or for the gradient in the input `grad_y, weight, [operand], grad_x`.
pub(super) fn over_images(conv: &OverImages<'_>, args: &[Arg]) -> Result<Vec<Dispatch>, Error> {
    let OverImages { direction, shape, epilogue } = *conv;
    let (kernel, label, is_backward) = match direction {
        Direction::Forward => ("conv2d", "kernels.conv2d.grouped", 0.0),
        Direction::Backward => ("conv2d_grad_input", "kernels.conv2d_grad_input.grouped", 1.0),
    };
    let (result, result_arg) = (conv.result(), conv.result_arg());
    let operands = [("SOURCE", args[0].dtype), ("WEIGHT", args[1].dtype), ("Y", args[result_arg].dtype)];
    let types: Vec<_> = operands.into_iter().chain(epilogue.stored_operand(args)).collect();
    let module = modules::GROUPED.module(&types).with_all(epilogue.parts(Results::Two));
    // An invocation computes two channels of a pixel.
    let n_pairs = result.n_pixels() * result.n_channels.div_ceil(2);
    let reads = [Binding::at(0).named("source"), Binding::at(1)].into_iter().chain(epilogue.bindings());
    let dispatch = Dispatch::elementwise(kernel, label, module, n_pairs)?
        .constants([("GRAD", is_backward)])
        .constants(epilogue.constants())
        .params(params(shape, [conv.source(), result]))
        .bind(args, reads, [Binding::at(result_arg).named("y")])?;
    Ok(vec![dispatch])
}

/// `grad_y, x, grad_weight, parts`.
pub(super) fn grad_weight(shape: &ConvShape, parts: Parts, args: &[Arg]) -> Result<Vec<Dispatch>, Error> {
    let n_weights = shape.n_weights();
    let module = modules::GRAD_WEIGHT_GROUPED.module(&[("GRAD_Y", args[0].dtype), ("SOURCE", args[1].dtype)]);
    let label = "kernels.conv2d_grad_weight.grouped";
    let products = Dispatch::elementwise("conv2d_grad_weight", label, module, parts.n * n_weights)?
        .params(params(shape, [shape.x, shape.y()]))
        .param("part_rows", parts.n_rows)
        .bind(args, [Binding::at(0), Binding::at(1).named("source")], [Binding::of("parts")])?;
    Ok(vec![products, sum_of_parts("kernels.conv2d_grad_weight.sum", [parts.n, n_weights], args, "grad_weight")?])
}

/// The fields that the modules share. Pairs are along the height and along the width.
fn params(shape: &ConvShape, [source, result]: [Images; 2]) -> impl Iterator<Item = (&'static str, Param)> {
    let images = window_params([("source_size", &source), ("result_size", &result)], &shape.window);
    let sizes = [
        ("n_images", source.n_images),
        ("n_source", source.n_channels),
        ("n_result", result.n_channels),
        ("group_source", source.n_channels / shape.n_groups),
        ("group_result", result.n_channels / shape.n_groups),
    ];
    images.into_iter().chain([("dilation", shape.dilation.into())]).chain(sizes.map(|(name, size)| (name, size.into())))
}
