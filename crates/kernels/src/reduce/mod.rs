//! Arg-max and cumulative sums along a dimension, and the first value that is not finite. Other reductions are [`MapReduce`](crate::MapReduce)s.

pub(crate) mod arg_max;
pub(crate) mod arg_max_cpu;
pub(crate) mod cumulative_sum;
pub(crate) mod cumulative_sum_cpu;
pub(crate) mod first_non_finite;
pub(crate) mod first_non_finite_cpu;
mod series;
