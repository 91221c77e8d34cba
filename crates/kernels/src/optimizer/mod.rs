//! Optimizer steps and the kernels for their gradients: clipping, loss scaling, accumulation.

pub(crate) mod accumulate_batches;
pub(crate) mod accumulate_batches_cpu;
pub(crate) mod adam;
pub(crate) mod adam_cpu;
pub(crate) mod clip;
pub(crate) mod ema;
pub(crate) mod ema_cpu;
pub(crate) mod grad_scaler;
pub(crate) mod grad_scaler_cpu;
pub(crate) mod lookahead;
pub(crate) mod lookahead_cpu;
pub(crate) mod muon;
pub(crate) mod muon_cpu;
pub(crate) mod newton_schulz;
pub(crate) mod newton_schulz_cpu;
pub(crate) mod parameter_groups;
pub(crate) mod parameter_groups_cpu;
pub(crate) mod rate_at_step;
pub(crate) mod rate_at_step_cpu;
pub(crate) mod runs;
pub(crate) mod runs_cpu;
pub(crate) mod sgd;
pub(crate) mod sgd_cpu;
pub(crate) mod skip;
pub(crate) mod skip_weightless;
pub(crate) mod skip_weightless_cpu;
