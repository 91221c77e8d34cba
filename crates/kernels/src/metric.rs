//! Metrics that are computed on the device.

pub(crate) mod correct;
pub(crate) mod correct_cpu;
