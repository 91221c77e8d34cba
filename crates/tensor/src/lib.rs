#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accumulate;
mod activation;
mod add;
mod algebra;
mod arg_max;
mod batch_norm;
mod check_gradients;
mod checkpoint;
mod columns;
mod concat;
mod conv2d;
mod correct;
mod cross_entropy;
mod cumulative_sum;
mod dims;
mod draws;
mod dropout;
mod elementwise;
mod elementwise_losses;
mod embedding;
mod error;
mod flip;
mod gather;
mod gather_rows;
mod graph;
#[cfg(any(doc, doctest))]
pub mod guide;
mod index_select;
mod layer_norm;
mod linear;
mod logsumexp;
mod loss;
mod loss_reduction;
mod matmul;
mod mixing;
mod multiply;
mod narrow;
mod operators;
mod pad_reflect;
mod permute;
mod place;
mod pool2d;
mod reduce;
mod report;
mod resolved;
mod row_weights;
mod rows;
mod shares;
mod softmax;
mod squeeze;
mod sync_batch_norm;
mod variance;
mod windows;

pub use batch_norm::{BatchNormOptions, Statistics};
pub use check_gradients::check_gradients;
pub use conv2d::Conv2dOptions;
pub use cross_entropy::CrossEntropyOptions;
pub use dims::Dims;
pub use elementwise::Elementwise;
pub use error::Error;
pub use graph::all_gather::AllGather;
pub use graph::anomaly::{Anomaly, Pass};
pub use graph::autocast::{Autocast, Precision};
pub use graph::backward::Backward;
pub use graph::operation::{AutocastRule, Forward, Operation};
pub use graph::recording::Recording;
pub use graph::row_weights::EpochRows;
pub use graph::scope::Scope;
pub use graph::tensor::Tensor;
pub use graph::{Graph, Mode};
pub use loss_reduction::LossReduction;
pub use mixing::MixedRows;
pub use place::Place;
pub use pool2d::Pool2d;
pub use report::{GraphReport, RecordedOperation};
pub use resolved::{Conversion, Resolved};
pub use rows::{DeviceBatch, ImageTable};
pub use windows::Windows;

pub use brisk_kernels::expr::Expr;
pub use brisk_kernels::{
    Activation, Border, DType, Flip, ImageAugmentation, Mixing, PoolDivisor, Reduction, Rounding, Transpose,
};
pub use brisk_program as program;
pub use brisk_program::Persistent;
