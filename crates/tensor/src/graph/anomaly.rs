use std::fmt;

use brisk_kernels::{DType, FirstNonFinite, MapReduce, Reducer};
use brisk_program::{Persistent, Program, Slice};

use crate::error::Error;
use crate::graph::node::Node;
use crate::graph::stored::push;

/// The first value that was not finite: the result of [`Graph::first_anomaly`](crate::Graph::first_anomaly).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomaly {
    /// The run of the program, counted from 1 since the graph was compiled or [cleared](crate::Graph::clear_anomaly).
    pub run: usize,
    /// The operation.
    pub operation: &'static str,
    /// The index of the operation among those that [`Graph::report`](crate::Graph::report) lists.
    pub index: usize,
    /// The pass in which the operation met the value.
    pub pass: Pass,
}

/// Where an operation met a value that is not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pass {
    /// In an operand that comes from outside the graph, data or parameters, with this index.
    Operand(usize),
    /// In its result.
    Forward,
    /// In a gradient that it computed.
    Backward,
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operand(operand) => write!(f, "its operand {operand}, which comes from outside the graph, is not finite"),
            Self::Forward => f.write_str("its result is the first value that is not finite"),
            Self::Backward => f.write_str("a gradient that it computes is the first value that is not finite"),
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, operation, index, pass } = self;
        write!(f, "run {run}, operation {index}, `{operation}`: {pass}")
    }
}

/// The checks for values that are not finite.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(super) first: Persistent,
    pub(super) places: Vec<Place>,
    /// The tensors from outside the graph that are checked already.
    pub(super) outside: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(super) operation: &'static str,
    pub(super) index: usize,
    pub(super) pass: Pass,
}

impl Place {
    /// The operation that computes tensor `id`.
    pub(crate) fn new(nodes: &[Node], id: usize, pass: Pass) -> Self {
        let index = nodes[..id].iter().filter(|node| node.op.is_some()).count();
        Self { operation: nodes[id].op.unwrap_or("loss"), index, pass }
    }
}

impl Watch {
    /// Records a check of `slice`.
    pub(crate) fn record(&mut self, program: &mut Program, slice: Slice, place: Place) -> Result<(), Error> {
        let found = program.transient("found", DType::F32, 1);
        push(program, MapReduce::of(Reducer::NonFinite, &[slice.len()], &[0]), &[slice, found])?;
        let first = program.persistent(&self.first);
        push(program, FirstNonFinite { place: self.places.len() as u32 }, &[found, first])?;
        self.places.push(place);
        Ok(())
    }
}
