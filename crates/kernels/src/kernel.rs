//! What a kernel is: the trait, the arguments of its twin, and checks of sizes and settings.

pub(crate) mod check_sizes;
pub(crate) mod floats;
pub(crate) mod interval;
#[expect(clippy::module_inception, reason = "the trait that the folder is about")]
pub(crate) mod kernel;
pub(crate) mod twin;
