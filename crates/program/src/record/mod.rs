//! What is recorded: kernels and steps of the host over buffers.

pub(crate) mod host_step;
pub(crate) mod persistent;
pub(crate) mod program;
