#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accumulate;
mod activation;
mod add;
mod anomaly;
mod autocast;
mod backward;
mod batch_norm;
mod batched_matmul;
mod cast;
mod checkpoint;
mod columns;
mod concat;
mod conv2d;
mod correct;
mod cross_entropy;
mod dropout;
mod embedding;
mod error;
mod gather_rows;
mod graph;
mod layer_norm;
mod linear;
mod loss;
mod matmul;
mod multiply;
mod narrow;
mod node;
mod pool2d;
mod reduce;
mod report;
mod resolved;
mod roc_auc;
mod rows;
mod shares;
mod softmax;
mod stored;
mod tensor;
mod windows;

pub use anomaly::{Anomaly, Pass};
pub use autocast::{Autocast, Precision};
pub use backward::Backward;
pub use batch_norm::{BatchNormOptions, Statistics};
pub use cross_entropy::CrossEntropyOptions;
pub use error::Error;
pub use graph::{Graph, Mode};
pub use pool2d::Pool2d;
pub use report::{Operation, Report};
pub use resolved::{Conversion, Resolved};
pub use rows::Batch;
pub use tensor::Tensor;
pub use windows::Windows;

pub use brisk_kernels::{Activation, DType, PoolDivisor, Reduction, Rounding, Transpose};
pub use brisk_program as program;
pub use brisk_program::Persistent;
