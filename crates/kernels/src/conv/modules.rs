//! Which parts the modules of convolutions and their gradients are made of. Epilogues and the sizes of cooperative matrices come on top.

use crate::core::module::part;
use crate::core::stored_types::{Group, Template};

/// Any shape, without workgroup memory.
pub(crate) const CONV2D: Template = Template::new(
    &[part!("conv2d.wgsl"), part!("walk.wgsl"), part!("taps.wgsl"), part!("results.wgsl"), part!("store_two.wgsl")],
    &[Group::one("SOURCE").loads(), Group::one("WEIGHT").loads(), Group::one("FUSED").loads(), Group::one("Y").stores()],
);
/// Register blocks, without barriers.
pub(crate) const CONV2D_DIRECT: Template = Template::new(
    &[
        part!("conv2d_direct.wgsl"),
        part!("walk.wgsl"),
        part!("taps.wgsl"),
        part!("results.wgsl"),
        part!("../product/row_blocks.wgsl"),
    ],
    &[Group::four("SOURCE").loads().by_device(), Group::four("FUSED").loads().by_device(), Group::four("Y").stores()],
);
/// Tiles of vectors in workgroup memory.
pub(crate) const CONV2D_TILED: Template = Template::new(
    &[part!("conv2d_tiled.wgsl"), part!("walk.wgsl"), part!("results.wgsl"), part!("../product/main_tiled.wgsl")],
    &[
        Group::four("SOURCE").loads().by_device(),
        Group::four("WEIGHT").loads().by_device(),
        Group::four("FUSED").loads().by_device(),
        Group::four("Y").stores(),
        Group::register("TILE"),
        Group::register("SUM"),
    ],
);
/// Tiles in workgroup memory, for any shape.
pub(crate) const CONV2D_TILED_ANY: Template = Template::new(
    &[
        part!("conv2d_tiled_any.wgsl"),
        part!("../product/main_tiled_any.wgsl"),
        part!("walk.wgsl"),
        part!("results.wgsl"),
        part!("store_two.wgsl"),
    ],
    &[Group::one("SOURCE").loads(), Group::one("WEIGHT").loads(), Group::one("FUSED").loads(), Group::one("Y").stores()],
);
/// Cooperative matrices.
pub(crate) const CONV2D_COOP: Template = Template::new(
    &[part!("conv2d_coop.wgsl"), part!("walk.wgsl"), part!("gathered.wgsl")],
    &[Group::four("FUSED").loads().by_device(), Group::four("Y").stores()],
)
.enabling(&["f16", "wgpu_cooperative_matrix"]);
/// The weights as the gradient of the input reads them.
pub(crate) const CONV2D_GRAD_INPUT_TURN: Template =
    Template::new(&[part!("conv2d_grad_input_turn.wgsl")], &[Group::one("WEIGHT").loads()]);
/// The gradient of the weights, any shape.
pub(crate) const CONV2D_GRAD_WEIGHT: Template = Template::new(
    &[part!("conv2d_grad_weight.wgsl"), part!("weight_params.wgsl"), part!("weight_columns.wgsl")],
    &[Group::one("GRAD_Y").loads(), Group::one("X").loads()],
);
/// The same in register blocks.
pub(crate) const CONV2D_GRAD_WEIGHT_DIRECT: Template = Template::new(
    &[
        part!("conv2d_grad_weight_direct.wgsl"),
        part!("weight_params.wgsl"),
        part!("weight_columns.wgsl"),
        part!("weight_store.wgsl"),
    ],
    &[Group::four("GRAD_Y").loads().by_device(), Group::four("X").loads().by_device()],
);
/// The same by tiles of vectors in workgroup memory.
pub(crate) const CONV2D_GRAD_WEIGHT_TILED: Template = Template::new(
    &[
        part!("conv2d_grad_weight_tiled.wgsl"),
        part!("weight_params.wgsl"),
        part!("weight_columns_checked.wgsl"),
        part!("weight_store.wgsl"),
        part!("../product/main_tiled.wgsl"),
    ],
    &[
        Group::four("GRAD_Y").loads().by_device(),
        Group::four("X").loads().by_device(),
        Group::register("TILE"),
        Group::register("SUM"),
    ],
);
/// The same by tiles, for any shape.
pub(crate) const CONV2D_GRAD_WEIGHT_TILED_ANY: Template = Template::new(
    &[
        part!("conv2d_grad_weight_tiled_any.wgsl"),
        part!("../product/main_tiled_any.wgsl"),
        part!("weight_params.wgsl"),
        part!("weight_columns_checked.wgsl"),
    ],
    &[Group::one("GRAD_Y").loads(), Group::one("X").loads()],
);
/// The same on cooperative matrices.
pub(crate) const CONV2D_GRAD_WEIGHT_COOP: Template =
    Template::new(&[part!("conv2d_grad_weight_coop.wgsl"), part!("gathered.wgsl")], &[])
        .enabling(&["f16", "wgpu_cooperative_matrix"]);
