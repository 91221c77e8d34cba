//! The crate from outside: one binary, a module a feature.

mod allocation;
mod batches;
mod prefetch;
mod shards;
mod shuffle;
mod source;
mod splits;
