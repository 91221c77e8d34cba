//! Replicas as threads: values, order, failures.

mod agreement;
mod buckets;
mod failures;
#[cfg(feature = "mpi")]
mod mpi;
mod started;
mod sums;
mod values;
