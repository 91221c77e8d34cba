//! What the crate promises, on the CPU executor: gradients are those of finite differences, refusals say what to do, inference is
//! smaller than training.

mod accumulate;
mod algebra;
mod anomaly;
mod autocast;
mod checkpoint;
mod dimensions;
mod finite_difference;
mod gradients;
mod memory;
mod open_operations;
mod random;
mod refusals;
mod regions;
mod row_operators;
mod tables;
