#![doc = include_str!("../README.md")]

mod access;
mod adapter;
mod cpu;
mod dispatch;
mod dtype;
mod error;
pub mod gpu;
mod kernel;
mod twin;

mod activation;
mod adam;
mod add;
mod advance;
mod batch_rows;
mod bce_with_logits;
mod column_sum;
mod gather_rows;
mod matmul;
mod matmul_gpu;
mod mse_loss;
mod order;
mod sgd;
mod sizes;
mod store_rows;

pub use access::{Access, Arg};
pub use activation::{Activate, Activation, ActivationGrad, OutputGrad};
pub use adam::{Adam, WeightDecay};
pub use adapter::{Adapter, AdapterKind};
pub use add::Add;
pub use advance::Advance;
pub use batch_rows::BatchRows;
pub use bce_with_logits::{BceWithLogits, BceWithLogitsGrad, Reduction};
pub use column_sum::ColumnSum;
pub use dispatch::{Dispatch, MAX_WORKGROUPS, fold_workgroups};
pub use dtype::DType;
pub use error::Error;
pub use gather_rows::GatherRows;
pub use kernel::{Cost, Kernel};
pub use matmul::{Epilogue, Matmul, Transpose};
pub use matmul_gpu::MatmulFamily;
pub use mse_loss::{MseLoss, MseLossGrad};
pub use order::{ORDER_LEN, STATE_LEN, sequential_order, shuffled_order};
pub use sgd::{Momentum, Sgd};
pub use store_rows::StoreRows;
pub use twin::TwinArgs;

pub use bytemuck;
pub use wgpu;
