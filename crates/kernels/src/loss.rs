//! Losses and their gradients.

pub(crate) mod bce_with_logits;
pub(crate) mod cross_entropy;
pub(crate) mod cross_entropy_cpu;
pub(crate) mod mse_loss;
pub(crate) mod weighted_mean;
