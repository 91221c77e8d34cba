#![doc = include_str!("../README.md")]

mod agree;
mod buckets;
mod collective;
mod element;
mod error;
mod run;
mod started;
mod threads;
mod tree;

pub use agree::{Described, agree};
pub use buckets::{Bucket, BucketSizes, buckets};
pub use collective::{Collective, CollectiveExt, ReduceOp, Values, ValuesMut};
pub use element::{Element, ElementType};
pub use error::Error;
pub use run::run_replicas;
pub use started::{CommThread, Pending};
pub use threads::{Threads, ThreadsConfig};
