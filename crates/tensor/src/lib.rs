#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod activation;
mod backward;
mod conv2d;
mod error;
mod graph;
mod linear;
mod loss;
mod matmul;
mod rows;
mod tensor;

pub use backward::Backward;
pub use error::Error;
pub use graph::{Graph, Mode};
pub use rows::Batch;
pub use tensor::Tensor;

pub use brisk_kernels::{Activation, DType, Reduction, Transpose};
pub use brisk_program as program;
pub use brisk_program::Persistent;
