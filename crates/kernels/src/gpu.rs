//! Recording kernels into a caller's own `wgpu` encoder.
//!
//! The caller owns the device and the queue: nothing in this module submits, waits or reads back, except
//! [`Recorder::check_products`]. Pipelines are made once per (module, entry point, constants), bind groups once per [`Recorded`].

mod check_products;
mod recorder;

pub use recorder::{Recorded, Recorder, encode_all};
