//! The parts of optimizers that are not a rule of each element: clipping, loss scaling, skipped steps, and the matrices of Muon.

pub(crate) mod clip;
pub(crate) mod grad_scaler;
pub(crate) mod grad_scaler_cpu;
pub(crate) mod newton_schulz;
pub(crate) mod newton_schulz_cpu;
pub(crate) mod runs;
pub(crate) mod runs_cpu;
pub(crate) mod skip;
pub(crate) mod skip_incomplete;
mod skip_incomplete_cpu;
pub(crate) mod skip_weightless;
pub(crate) mod skip_weightless_cpu;
