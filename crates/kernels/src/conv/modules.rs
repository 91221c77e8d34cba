//! Which parts the modules of convolutions and their gradients are made of. The main loop of the form and the epilogue are added
//! to these.

use crate::product::modules::{elements, on_matrices, vectors};
use crate::shader::module::part;
use crate::storage::stored_types::{Group, Template};

/// The operands of tiled and direct forms, loaded as vectors.
pub(crate) const CONV2D: Template = Template::new(
    &[part!("conv2d_job.wgsl"), part!("conv2d_blocks.wgsl"), part!("source_blocks.wgsl"), part!("../product/store_four.wgsl")],
    &vectors("SOURCE", "WEIGHT"),
);
/// The same as single elements.
pub(crate) const CONV2D_ANY: Template = Template::new(
    &[
        part!("conv2d_job.wgsl"),
        part!("conv2d_blocks.wgsl"),
        part!("source_blocks.wgsl"),
        part!("../product/store_four_any.wgsl"),
    ],
    &elements("SOURCE", "WEIGHT"),
);
/// The operands of cooperative matrices.
pub(crate) const CONV2D_COOP: Template = on_matrices(&[
    part!("conv2d_job.wgsl"),
    part!("conv2d_matrices.wgsl"),
    part!("source_matrices.wgsl"),
    part!("../product/store_four.wgsl"),
]);
/// The gradient of the weights, with vectors.
pub(crate) const GRAD_WEIGHT: Template = Template::new(
    &[
        part!("conv2d_grad_weight_job.wgsl"),
        part!("conv2d_grad_weight_blocks.wgsl"),
        part!("source_blocks.wgsl"),
        part!("../product/store_four.wgsl"),
    ],
    &vectors("GRAD_Y", "SOURCE"),
);
/// The same with single elements.
pub(crate) const GRAD_WEIGHT_ANY: Template = Template::new(
    &[
        part!("conv2d_grad_weight_job.wgsl"),
        part!("conv2d_grad_weight_blocks.wgsl"),
        part!("source_blocks.wgsl"),
        part!("../product/store_four_any.wgsl"),
    ],
    &elements("GRAD_Y", "SOURCE"),
);
/// The same with cooperative matrices.
pub(crate) const GRAD_WEIGHT_COOP: Template = on_matrices(&[
    part!("conv2d_grad_weight_job.wgsl"),
    part!("conv2d_grad_weight_matrices.wgsl"),
    part!("source_matrices.wgsl"),
    part!("../product/store_four.wgsl"),
]);
/// With groups or dilation, as single elements.
pub(crate) const GROUPED: Template = Template::new(
    &[part!("conv2d_grouped.wgsl"), part!("../product/store_four_any.wgsl")],
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
