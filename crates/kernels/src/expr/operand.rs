//! What instructions are evaluated on: inputs, and the slots of intermediate values.

use std::ops::Range;

use crate::aligned::AlignedFloats;

/// Elements of a block. One chain after another processes it, so it must stay in the L1 cache with all slots; but each chain of a
/// block waits for memory at its start, so it should not be short either.
pub(crate) const BLOCK_LEN: usize = 1024;

/// An input of an evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Operand<'a> {
    /// A value for each element.
    Slice(&'a [f32]),
    /// The same value for all elements.
    Splat(f32),
}

impl Operand<'_> {
    /// Element `i`.
    pub(super) fn at(&self, i: usize) -> f32 {
        match self {
            Self::Slice(values) => values[i],
            Self::Splat(value) => *value,
        }
    }

    /// The elements of `range`.
    pub(crate) fn slice(&self, range: Range<usize>) -> Self {
        match self {
            Self::Slice(values) => Self::Slice(&values[range]),
            Self::Splat(value) => Self::Splat(*value),
        }
    }
}

/// An intermediate value of each element of a block.
#[derive(Debug)]
pub(super) struct Slot(pub(super) AlignedFloats);

impl Slot {
    pub(super) fn new() -> Self {
        Self(AlignedFloats::new(BLOCK_LEN))
    }
}
