//! Reductions: of a [`Map`](crate::Map) over dimensions, of rows, and others, such as arg-max and cumulative sums.

pub(crate) mod arg_max;
pub(crate) mod arg_max_cpu;
pub(crate) mod cumulative_sum;
pub(crate) mod cumulative_sum_cpu;
pub(crate) mod first_non_finite;
pub(crate) mod first_non_finite_cpu;
pub(crate) mod map_reduce;
pub(crate) mod map_reduce_cpu;
pub(crate) mod map_reduce_module;
pub(crate) mod reduce_op;
pub(crate) mod row_dispatch;
pub(crate) mod rows_cpu;
mod series;
