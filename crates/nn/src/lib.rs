#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod accumulate;
mod batch_norm;
mod buffer;
mod checkpointed;
mod clip;
mod conv2d;
mod division;
mod dropout;
mod ema;
mod embedding;
mod grad_scaler;
mod init;
mod initial;
mod layer_norm;
mod linear;
mod mlp;
mod module;
mod muon;
mod newton_schulz;
mod optimizer;
mod parameter_group;
mod parameters;
mod pool2d;
mod schedule;
mod sequential;
mod together;

pub use accumulate::Accumulate;
pub use batch_norm::{BatchNorm, BatchNormConfig, Scale};
pub use buffer::{Buffer, BufferId};
pub use checkpointed::Checkpointed;
pub use conv2d::{Bias, Conv2d, Conv2dConfig};
pub use division::{BoundBucket, DividedBucket, Division, Kept, Piece};
pub use dropout::Dropout;
pub use ema::Ema;
pub use embedding::{CategoricalColumn, Embedding};
pub use grad_scaler::{GradScaler, GradScalerConfig, ScalerReport};
pub use init::Init;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mlp::{Mlp, MlpConfig};
pub use module::Module;
pub use muon::{Muon, MuonNorm, MuonScale};
pub use optimizer::{Adam, Optimizer, Sgd, StepInputs};
pub use parameter_group::ParameterGroup;
pub use parameters::{Bound, Entry, ParameterId, Parameters, ParametersBuilder};
pub use pool2d::{AvgPool2d, GlobalAvgPool2d, GlobalMaxPool2d, MaxPool2d};
pub use schedule::{RateFn, Schedule, Steps};
pub use sequential::Sequential;
pub use together::Together;

pub use brisk_kernels::Philox;
pub use brisk_tensor as tensor;
pub use brisk_tensor::{Activation, Error};
