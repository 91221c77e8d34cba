//! The elementwise kernel, which evaluates an expression for each element of its broadcast arguments; and reductions of such an expression.

pub(crate) mod draws;
pub(crate) mod draws_cpu;
mod fusion;
mod inputs_cpu;
pub(crate) mod layout;
mod loads;
#[expect(clippy::module_inception, reason = "the kernel that gives the family its name")]
pub(crate) mod map;
pub(crate) mod map_cpu;
pub(crate) mod map_in_place;
pub(crate) mod map_input;
pub(crate) mod map_reduce;
pub(crate) mod map_reduce_cpu;
pub(crate) mod map_reduce_module;
mod module;
pub(crate) mod reduce_op;
