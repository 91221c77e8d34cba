//! What the crate promises, on the CPU executor.

mod layers;
mod optimizers;
mod parameters;
