//! Recording: kernels and host steps over buffers.

pub(crate) mod host_part;
pub(crate) mod host_step;
pub(crate) mod host_type;
pub(crate) mod persistent;
pub(crate) mod program;
pub(crate) mod upload;
