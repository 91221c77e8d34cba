//! Which parts the modules of matrix products are made of. Epilogues and the sizes of cooperative matrices come on top.

use crate::core::module::part;
use crate::core::stored_types::{Group, Template};

/// Any shape, without workgroup memory.
pub(crate) const MATMUL: Template = Template::new(
    &[part!("matmul.wgsl"), part!("store_two.wgsl")],
    &[Group::one("A").loads(), Group::one("B").loads(), Group::one("FUSED").loads(), Group::one("Y").stores()],
);
/// Few columns.
pub(crate) const MATMUL_NARROW: Template = Template::new(
    &[part!("matmul_narrow.wgsl")],
    &[Group::one("A").loads(), Group::one("B").loads(), Group::one("FUSED").loads(), Group::one("Y").stores()],
);
/// The same, where both operands are read by vectors along K.
pub(crate) const MATMUL_NARROW_VECTORS: Template = Template::new(
    &[part!("matmul_narrow_vectors.wgsl")],
    &[
        Group::four("A").loads().by_device(),
        Group::four("B").loads().by_device(),
        Group::one("FUSED").loads(),
        Group::one("Y").stores(),
    ],
);
/// Few rows, or a short K.
pub(crate) const MATMUL_THIN: Template = Template::new(
    &[part!("matmul_thin.wgsl")],
    &[
        Group::one("A").loads(),
        Group::four("B").loads().by_device(),
        Group::four("FUSED").loads().by_device(),
        Group::four("Y").stores(),
    ],
);
/// Register blocks, without barriers.
pub(crate) const MATMUL_DIRECT: Template = Template::new(
    &[part!("matmul_direct.wgsl"), part!("row_blocks.wgsl")],
    &[
        Group::four("A").loads().by_device(),
        Group::four("B").loads().by_device(),
        Group::four("FUSED").loads().by_device(),
        Group::four("Y").stores(),
    ],
);
/// Tiles of vectors in workgroup memory.
pub(crate) const MATMUL_TILED: Template = Template::new(
    &[part!("matmul_tiled.wgsl"), part!("main_tiled.wgsl")],
    &[
        Group::four("A").loads().by_device(),
        Group::four("B").loads().by_device(),
        Group::four("FUSED").loads().by_device(),
        Group::four("Y").stores(),
        Group::register("TILE"),
        Group::register("SUM"),
    ],
);
/// Tiles in workgroup memory, for any shape.
pub(crate) const MATMUL_TILED_ANY: Template = Template::new(
    &[part!("matmul_tiled_any.wgsl"), part!("main_tiled_any.wgsl"), part!("store_two.wgsl")],
    &[Group::one("A").loads(), Group::one("B").loads(), Group::one("FUSED").loads(), Group::one("Y").stores()],
);
/// Cooperative matrices.
pub(crate) const MATMUL_COOP: Template =
    Template::new(&[part!("matmul_coop.wgsl")], &[Group::four("FUSED").loads().by_device(), Group::four("Y").stores()])
        .enabling(&["f16", "wgpu_cooperative_matrix"]);
/// A batch of products, in register blocks.
pub(crate) const BATCHED_MATMUL_DIRECT: Template = Template::new(
    &[part!("batched_matmul_direct.wgsl")],
    &[Group::four("A").loads().by_device(), Group::four("B").loads().by_device(), Group::four("Y").stores()],
);
/// A batch of products of any shape.
pub(crate) const BATCHED_MATMUL: Template =
    Template::new(&[part!("batched_matmul.wgsl")], &[Group::one("A").loads(), Group::one("B").loads(), Group::one("Y").stores()]);
/// A transposed copy of an operand.
pub(crate) const MATMUL_TRANSPOSE: Template = Template::new(&[part!("matmul_transpose.wgsl")], &[Group::one("X").loads()]);
/// The same by blocks of 4 by 4.
pub(crate) const MATMUL_TRANSPOSE_BLOCKS: Template =
    Template::new(&[part!("matmul_transpose_blocks.wgsl")], &[Group::four("X").loads().by_device()]);
