//! Reductions and cumulative sums along one dimension.

pub(crate) mod arg_max;
pub(crate) mod arg_max_cpu;
pub(crate) mod column_sum;
pub(crate) mod column_sum_cpu;
pub(crate) mod cumulative_sum;
pub(crate) mod cumulative_sum_cpu;
pub(crate) mod first_non_finite;
pub(crate) mod first_non_finite_cpu;
#[expect(clippy::module_inception, reason = "the kernel that gives the family its name")]
pub(crate) mod reduce;
pub(crate) mod reduce_cpu;
mod series;
