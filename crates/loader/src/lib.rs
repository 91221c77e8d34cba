#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod batch;
mod buffers;
mod conformance;
mod error;
mod loader;
mod order;
mod part;
mod plan;
mod prefetch;
mod ring;
mod rows;
mod shard;
mod shuffle;
mod source;
mod subset;

pub use batch::{Batch, Batching, LastBatch};
pub use conformance::row_source_conformance;
pub use error::Error;
pub use loader::{Epoch, Loader};
pub use order::Order;
pub use prefetch::{Ahead, Prefetch, PrefetchEpoch};
pub use rows::{Rows, check_gather};
pub use shard::{Shard, Uneven};
pub use shuffle::Shuffle;
pub use source::{Feature, RowSource};
pub use subset::{Fold, Subset, k_fold, split};
