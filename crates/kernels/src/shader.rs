//! How shaders are put together: modules as lists of parts, declared arguments and parameters, dispatches.

pub(crate) mod binding;
pub(crate) mod dispatch;
pub(crate) mod module;
pub(crate) mod names;
pub(crate) mod param;
pub(crate) mod unchecked;
