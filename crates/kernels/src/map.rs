//! Elementwise computations as values: an expression for each element of broadcast inputs, and the fusion of two of them.

pub(crate) mod form;
mod fusion;
pub(crate) mod layout;
#[expect(clippy::module_inception, reason = "the type that the folder is about")]
pub(crate) mod map;
pub(crate) mod map_input;
