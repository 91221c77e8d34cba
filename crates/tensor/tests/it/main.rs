//! What the crate promises, on the CPU executor: gradients agree with finite differences, refusals say what to do, inference
//! takes less memory than training.

mod accumulate;
mod algebra;
mod anomaly;
mod autocast;
mod batch_index;
mod bound_twice;
mod checkpoint;
mod derivatives;
mod dimensions;
mod draws;
mod finite_difference;
mod gradients;
mod memory;
mod open_operations;
mod operators;
mod random;
mod recording;
mod refusal;
mod refusals;
mod regions;
mod row_operators;
mod selection;
mod tables;
