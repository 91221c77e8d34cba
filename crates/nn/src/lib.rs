#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod clip;
mod ema;
mod embedding;
mod init;
mod layer_norm;
mod linear;
mod mlp;
mod module;
mod optimizer;
mod parameters;
mod philox;
mod schedule;

pub use ema::Ema;
pub use embedding::{CategoricalColumn, Embedding};
pub use init::Init;
pub use layer_norm::LayerNorm;
pub use linear::Linear;
pub use mlp::{Mlp, MlpConfig};
pub use module::Module;
pub use optimizer::{Adam, Optimizer, Sgd, StepInputs};
pub use parameters::{Bound, Entry, ParameterId, Parameters, ParametersBuilder};
pub use philox::Philox;
pub use schedule::Schedule;

pub use brisk_tensor as tensor;
pub use brisk_tensor::{Activation, Error};
