//! Which parts the modules of convolutions and their gradients are made of. The form's main loop and the epilogue are added.

use crate::product::form::STORE_FOUR_ANY;
use crate::product::modules::{elements, on_matrices, vectors};
use crate::shader::module::{Part, part};
use crate::storage::stored_types::{Group, Template};

const BLOCKS: &[Part] = &[part!("conv2d_job.wgsl"), part!("conv2d_blocks.wgsl"), part!("source_blocks.wgsl")];
/// Tiled and direct forms, for each kind of reads.
pub(crate) const CONV2D: [Template; 2] =
    [Template::new(BLOCKS, &vectors("SOURCE", "WEIGHT")), Template::new(BLOCKS, &elements("SOURCE", "WEIGHT"))];
pub(crate) const CONV2D_COOP: Template =
    on_matrices(&[part!("conv2d_job.wgsl"), part!("conv2d_matrices.wgsl"), part!("source_matrices.wgsl")]);

const GRAD_WEIGHT_BLOCKS: &[Part] =
    &[part!("conv2d_grad_weight_job.wgsl"), part!("conv2d_grad_weight_blocks.wgsl"), part!("source_blocks.wgsl")];
/// The gradient of the weights, likewise.
pub(crate) const GRAD_WEIGHT: [Template; 2] = [
    Template::new(GRAD_WEIGHT_BLOCKS, &vectors("GRAD_Y", "SOURCE")),
    Template::new(GRAD_WEIGHT_BLOCKS, &elements("GRAD_Y", "SOURCE")),
];
pub(crate) const GRAD_WEIGHT_COOP: Template = on_matrices(&[
    part!("conv2d_grad_weight_job.wgsl"),
    part!("conv2d_grad_weight_matrices.wgsl"),
    part!("source_matrices.wgsl"),
]);

/// With groups or dilation, as single elements.
pub(crate) const GROUPED: Template = Template::new(
    &[part!("conv2d_grouped.wgsl"), STORE_FOUR_ANY],
    &[
        Group::one("SOURCE").loads(),
        Group::one("WEIGHT").loads(),
        Group::one("FUSED").loads().optional(),
        Group::one("Y").stores(),
    ],
);
/// The gradient of the weights with groups or dilation.
pub(crate) const GRAD_WEIGHT_GROUPED: Template =
    Template::new(&[part!("conv2d_grad_weight_grouped.wgsl")], &[Group::one("GRAD_Y").loads(), Group::one("SOURCE").loads()]);
