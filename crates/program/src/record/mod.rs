//! Recording: kernels and host steps over buffers.

pub(crate) mod host_step;
pub(crate) mod persistent;
pub(crate) mod program;
