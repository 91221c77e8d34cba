//! Replicas as threads: values, order, failures.

mod agreement;
mod buckets;
mod compression;
mod cost;
mod failures;
mod late;
#[cfg(feature = "mpi")]
mod mpi;
mod sharding;
mod started;
mod sums;
mod values;
