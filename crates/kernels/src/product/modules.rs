//! Which parts the modules of matrix products are made of. The main loop of the form and the epilogue are added to these.

use crate::shader::module::{Part, part};
use crate::storage::stored_types::{Group, Template};

/// The groups of the tiled and direct forms: two operands, the argument of the epilogue and the result, accessed as vectors.
pub(crate) const fn vectors(a: &'static str, b: &'static str) -> [Group; 6] {
    [
        Group::four(a).fetches().by_device(),
        Group::four(b).fetches().by_device(),
        Group::four("FUSED").loads().by_device().optional(),
        Group::four("Y").stores(),
        Group::register("TILE"),
        Group::register("SUM"),
    ]
}

/// The same, accessed as single elements.
pub(crate) const fn elements(a: &'static str, b: &'static str) -> [Group; 6] {
    [
        Group::one(a).fetches(),
        Group::one(b).fetches(),
        Group::one("FUSED").loads().optional(),
        Group::one("Y").stores(),
        Group::register("TILE"),
        Group::register("SUM"),
    ]
}

/// A module whose operands are cooperative matrices.
pub(crate) const fn on_matrices(parts: &'static [Part]) -> Template {
    const GROUPS: &[Group] = &[Group::four("FUSED").loads().by_device().optional(), Group::four("Y").stores()];
    Template::new(parts, GROUPS).enabling(&["f16", "wgpu_cooperative_matrix"])
}

const BLOCKS: &[Part] = &[part!("matmul_job.wgsl"), part!("matmul_blocks.wgsl")];
/// Tiled and direct forms, for each kind of reads.
pub(crate) const MATMUL: [Template; 2] = [Template::new(BLOCKS, &vectors("A", "B")), Template::new(BLOCKS, &elements("A", "B"))];
pub(crate) const MATMUL_COOP: Template = on_matrices(&[part!("matmul_job.wgsl"), part!("matmul_matrices.wgsl")]);
/// Products with few columns, whose operands are read as vectors along K.
pub(crate) const MATMUL_NARROW: Template = Template::new(
    &[part!("matmul_narrow.wgsl"), part!("block.wgsl")],
    &[
        Group::four("A").fetches().by_device(),
        Group::four("B").fetches().by_device(),
        Group::one("FUSED").loads().optional(),
        Group::one("Y").stores(),
        Group::register("TILE"),
    ],
);
/// The same as single elements.
pub(crate) const MATMUL_NARROW_ANY: Template = Template::new(
    &[part!("matmul_narrow.wgsl"), part!("block.wgsl")],
    &[
        Group::one("A").fetches(),
        Group::one("B").fetches(),
        Group::one("FUSED").loads().optional(),
        Group::one("Y").stores(),
        Group::register("TILE"),
    ],
);
/// Products with few rows, or a short K.
pub(crate) const MATMUL_THIN: Template = Template::new(
    &[part!("matmul_thin.wgsl")],
    &[
        Group::one("A").loads(),
        Group::four("B").loads().by_device(),
        Group::four("FUSED").loads().by_device().optional(),
        Group::four("Y").stores(),
    ],
);
