//! The training cases split across replicas: each processes its part of every batch, and all give the result of one device.

use anyhow::{Result, ensure};
use brisk_program::Device;
use brisk_train::{BatchStatistics, BucketSizes, DataParallel, DataParallelConfig, run_threads};

use crate::case::{Case, Outputs};
use crate::form::Form;
use crate::{convnet, runs};

/// Buckets of one or two layers, and batch statistics of the whole batch, as in PyTorch's expected results.
pub(crate) const CONFIG: DataParallelConfig = DataParallelConfig {
    buckets: BucketSizes { first_bytes: 256, bytes: 1024 },
    wire: brisk_train::Wire::F32,
    zero: brisk_train::ZeroStage::Replicated,
    files: brisk_train::CheckpointFiles::One,
    batch_norm: BatchStatistics::OfAll,
    uneven: None,
};

/// The result of the case on `n` replicas that are threads; `None` if it is not a training run. All replicas must be
/// bit-identical, and so must a second run.
pub(crate) fn by_threads(case: &Case, device: &Device, form: Form, n: usize) -> Result<Option<Outputs>> {
    let once = || run_threads(n, &CONFIG, |replica| outputs(case, device, form, replica));
    let (first, second) = (once()?, once()?);
    ensure!(first.iter().all(|outputs| *outputs == first[0]), "replicas hold other values");
    ensure!(second == first, "a second run gave different values");
    Ok(first.into_iter().next().flatten())
}

/// The same on one of the replicas.
pub(crate) fn outputs(case: &Case, device: &Device, form: Form, replica: &DataParallel) -> Result<Option<Outputs>> {
    Ok(match runs::run_on(case, device, form, replica)? {
        Some(outputs) => Some(outputs),
        None => convnet::run_on(case, device, form, replica)?,
    })
}
