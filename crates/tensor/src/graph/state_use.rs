//! What a graph uses the state of the run for.

use std::ops::Range;

use brisk_program::{Persistent, Slice};

use crate::place::Place;

/// Where a graph's random numbers come from.
#[derive(Debug, Default)]
pub(crate) struct Source {
    pub(super) state: Option<Persistent>,
    pub(super) seed: u64,
    /// Streams so far: each operation that draws has one or more.
    pub(super) n_streams: u32,
    /// The rows of the whole batch that the graph computes.
    pub(crate) rows: Range<usize>,
}

/// A use of a batch index.
#[derive(Debug)]
pub(crate) struct IndexUse {
    pub(crate) op: &'static str,
    pub(crate) state: Slice,
    pub(crate) place: Place,
    /// Whether another graph or the host advances the index.
    pub(crate) is_held: bool,
    /// Whether random numbers are drawn.
    pub(crate) draws: bool,
}
