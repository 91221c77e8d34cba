//! Metrics that are computed on the device.

pub(crate) mod correct;
pub(crate) mod correct_cpu;
pub(crate) mod roc_auc;
pub(crate) mod roc_auc_cpu;
