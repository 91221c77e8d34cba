//! Random numbers that are computed from a seed and a counter, the same on both executors.

pub(crate) mod draws;
pub(crate) mod draws_cpu;
pub(crate) mod philox;
