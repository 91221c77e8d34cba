//! Tests of the crate's public interface, on the CPU executor.

mod accumulate;
mod averages_and_clipping;
mod batch_ensemble;
mod fused;
mod grad_scaler;
mod gradients_of_a_step;
mod images;
mod layer_case;
mod layers;
mod lookahead;
mod mistakes;
mod muon;
mod new_optimizers;
mod optimizers;
mod parameter_groups;
mod parameters;
mod periodic;
mod planned;
mod real_mlp;
mod rules;
mod sharding;
mod tab_m;
