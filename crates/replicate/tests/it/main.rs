//! Replicas as threads: values, order, failures.

mod agreement;
mod buckets;
mod failures;
mod started;
mod values;
