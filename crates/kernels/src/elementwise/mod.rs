//! Elementwise kernels that cannot be a [`Map`](crate::Map): conversions, which also convert integers and keep subnormal numbers on any device.

pub(crate) mod cast;
pub(crate) mod cast_cpu;
