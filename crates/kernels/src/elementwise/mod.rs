//! Elementwise kernels that cannot be a [`Map`](crate::Map): conversions, which also convert integers and keep subnormal numbers on any device, and dropout, which draws
//! random numbers.

pub(crate) mod cast;
pub(crate) mod cast_cpu;
pub(crate) mod dropout;
pub(crate) mod dropout_cpu;
