#![doc = include_str!("../README.md")]

mod agree;
mod buckets;
mod call;
mod collective;
mod compress;
mod cost;
mod element;
mod error;
#[cfg(any(doc, doctest))]
pub mod guide;
mod halves;
#[cfg(feature = "mpi")]
mod mpi;
mod reading;
mod reduce_op;
mod run;
mod shards;
mod started;
mod threads;
mod tree;
mod vectorised;
mod waits;
#[cfg(feature = "mpi")]
mod watch;

pub use agree::agree;
pub use buckets::{Bucket, BucketSizes, buckets};
pub use collective::{Collective, CollectiveExt, DynSlice, DynSliceMut};
pub use compress::{Compressed, Wire};
pub use cost::{Algorithm, Link, StepCost};
pub use element::{Element, ElementType};
pub use error::Error;
#[cfg(feature = "mpi")]
pub use mpi::{Mpi, MpiConfig, SumOrder};
pub use reading::{ReadBound, TableReading};
pub use reduce_op::ReduceOp;
pub use run::run_replicas;
pub use shards::{Shards, StateBytes, ZeroStage};
pub use started::{CommThread, Pending};
pub use threads::{Threads, ThreadsConfig};
