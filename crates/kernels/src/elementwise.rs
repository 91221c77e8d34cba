//! Elementwise kernels: [`Map`](crate::Map)s, and conversions, also of integers, which keep subnormal numbers on any device.

pub(crate) mod cast;
pub(crate) mod cast_cpu;
pub(crate) mod inputs_cpu;
pub(crate) mod loads;
pub(crate) mod map_cpu;
pub(crate) mod map_in_place;
mod map_kernel;
pub(crate) mod map_module;
