#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod batch;
mod block_shuffle;
mod buffers;
mod by_key;
mod chunks;
mod classes;
mod conformance;
mod decoded;
mod draws;
mod error;
#[cfg(any(doc, doctest))]
pub mod guide;
mod hints;
mod huge_pages;
mod key;
mod loader;
mod make;
mod order;
mod part;
mod plan;
mod prefetch;
mod ring;
mod rows;
mod shard;
mod shuffle;
mod source;
mod split;
mod state;
mod stratified;
mod subset;
mod timer;

pub use batch::{Batch, Batching, LastBatch};
pub use block_shuffle::BlockShuffle;
pub use by_key::{group_k_fold, key_of, split_by_key};
pub use chunks::{Chunk, CodesAndWeights, for_each_chunk};
pub use conformance::row_source_conformance;
pub use decoded::Decoded;
pub use draws::{WeightedDraws, class_balanced_weights};
pub use error::{Error, with_causes};
pub use huge_pages::HugePages;
pub use key::Key;
pub use loader::{Epoch, Loader};
pub use make::{AsGathered, Make, Mapped, MappedRows, Row};
pub use order::{EpochOrder, Order};
pub use prefetch::{Ahead, Prefetch, PrefetchEpoch};
pub use rows::{Rows, check_gather};
pub use shard::{Remainder, Shard};
pub use shuffle::Shuffle;
pub use source::{ColumnMoments, Feature, RowSource};
pub use split::{Fold, k_fold, split};
pub use state::State;
pub use stratified::{labels_of, stratified_k_fold, stratified_split};
pub use subset::Subset;
pub use timer::{Bottleneck, Stage, StageReport, StageTimer};
