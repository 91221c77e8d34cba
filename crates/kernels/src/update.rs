//! The kernel that applies a rule to each element, in place: the steps of optimizers, moving averages, accumulation.

pub(crate) mod number;
pub(crate) mod rule;
pub(crate) mod step_value;
#[expect(clippy::module_inception, reason = "the kernel that gives the family its name")]
pub(crate) mod update;
mod update_cpu;
mod update_module;
