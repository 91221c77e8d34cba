//! Tests of the public interface: one binary, one module per feature.

mod allocation;
mod batches;
mod blocks;
mod decoded;
mod draws;
mod lanes;
mod prefetch;
mod resume;
mod shards;
mod shuffle;
mod source;
mod splits;
mod timing;
mod transforms;
