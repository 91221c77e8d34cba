//! The crate from outside: one binary, a module a feature.

mod allocation;
mod batches;
mod blocks;
mod decoded;
mod draws;
mod prefetch;
mod resume;
mod shards;
mod shuffle;
mod source;
mod splits;
mod timing;
mod transforms;
