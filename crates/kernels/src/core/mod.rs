//! What all kernels share: the trait, arguments, dispatches, element types, the recorder, and the loops of the twins.

pub(crate) mod access;
pub(crate) mod adapter;
pub(crate) mod binding;
pub(crate) mod blocks;
mod check_products;
pub(crate) mod converted;
pub(crate) mod coop_shape;
pub(crate) mod dispatch;
pub(crate) mod dtype;
pub(crate) mod error;
pub(crate) mod float;
pub mod gpu;
pub(crate) mod half;
pub(crate) mod kernel;
pub(crate) mod module;
pub(crate) mod param;
pub(crate) mod philox;
pub(crate) mod room;
pub(crate) mod rows;
pub(crate) mod rows_cpu;
pub(crate) mod sizes;
pub(crate) mod stored_form;
pub(crate) mod stored_types;
pub(crate) mod team;
pub(crate) mod twin;
mod unchecked;
pub(crate) mod vectorised;
