use brisk_kernels::DType;

use crate::place::Place;

/// Why an operation could not be recorded.
///
/// Recording returns no errors: [`Graph::check`](crate::Graph::check) and others return the first one, as [`Error::At`] with its
/// [`Place`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// An error, never another `At`, with the place where the refused operation was recorded. [`kind`](Self::kind) is the error
    /// without the place.
    #[error("{error} ({place})")]
    At { error: Box<Self>, place: Place },
    /// An argument has a shape that the operation does not support.
    #[error("{op}: `{arg}` has shape {found:?}, expected {expected}")]
    Shape { op: &'static str, arg: &'static str, expected: String, found: Vec<usize> },
    /// An argument has a dtype that the operation does not support.
    #[error("{op}: `{arg}` is {found}, expected {expected}")]
    Dtype { op: &'static str, arg: &'static str, expected: &'static str, found: DType },
    /// An override of autocast, of the operation `found`, that applies to none of those that the region has `recorded`.
    #[error("autocast: the override of `{found}` applies to no operation of the region, which records: {recorded}")]
    UnusedOverride { found: String, recorded: String },
    /// A gradient that differs from the slope of its function: [`check_gradients`](crate::check_gradients). The parameter is
    /// `None` for all together; `stored` says how they are stored.
    #[error(
        "check_gradients: with {stored}, the gradient of {} gives a slope of {found} in a random direction, expected {expected} by finite differences",
        .parameter.map_or("all parameters".to_owned(), |i| format!("parameter {i}"))
    )]
    Gradient { stored: String, parameter: Option<usize>, found: f64, expected: f64 },
    /// A backward pass through an operation without one.
    #[error(
        "backward: the operation `{op}` has no gradient; implement `Operation::backward`, or say that it is not differentiable"
    )]
    NotDifferentiable { op: &'static str },
    /// An unknown name of a precision.
    #[error("there is no precision `{found}`; use f32, f16 or bf16")]
    UnknownPrecision { found: String },
    /// A tensor of another graph.
    #[error("{op}: `{arg}` belongs to another graph; share values by a `Persistent` that both graphs bind")]
    ForeignTensor { op: &'static str, arg: &'static str },
    /// A kernel that uses the state of a run after the step has ended.
    #[error(
        "{op}: recorded in the graph `{graph}` after `Graph::advance`, which ends the step, so it would use the state of the next one; record it before, and `advance` once"
    )]
    AfterAdvance { op: &'static str, graph: String },
    /// A graph that reads the batch index and never advances it, so that each replay would see the same batch.
    #[error(
        "{op}: the graph `{graph}` never advances the batch index; end the step with `Graph::advance`, or say that the index stays with `Graph::hold`"
    )]
    NotAdvanced { op: &'static str, graph: String },
    /// A graph that draws random numbers and never advances its state, so that each replay would draw the same.
    #[error(
        "{op}: the graph `{graph}` never advances its own state, so every step would draw the same numbers; give `Graph::state` of this graph to the optimizer and to `Graph::advance`, or say that it stays with `Graph::hold`"
    )]
    SameDraws { op: &'static str, graph: String },
    /// More batches than a buffer has elements (`len`) for.
    #[error(
        "`{buffer}` has {len} elements, and {n_batches} batches have been run since the batch index was 0; reset the index before each epoch, or make the buffer as long as an epoch"
    )]
    Overrun { buffer: String, len: usize, n_batches: usize },
    /// A backward pass of a graph that keeps no tape.
    #[error("backward: the graph `{graph}` was made for inference and keeps no tape; make it with `Graph::training`")]
    NoTape { graph: String },
    /// A backward pass from a loss that is not a single number.
    #[error("backward: the loss has shape {found:?}, expected one number; reduce it first")]
    LossNotScalar { found: Vec<usize> },
    /// A second backward pass.
    #[error(
        "backward: the graph `{graph}` has its backward pass already; sum the losses and go back once, or go back within `Graph::accumulate`"
    )]
    BackwardTwice { graph: String },
    /// A value that a gradient is computed from has been overwritten.
    #[error(
        "backward: the gradient of `{op}` is computed from {what}, which a kernel recorded after it has overwritten; record that kernel after the backward pass, or let it write to another buffer"
    )]
    Overwritten { op: &'static str, what: String },
    /// A query about anomalies in a graph that does not detect them.
    #[error("{op}: the graph `{graph}` does not detect anomalies; call `Graph::detect_anomaly` before anything is recorded")]
    NotDetecting { op: &'static str, graph: String },
    /// The loss does not depend on a parameter with a gradient.
    #[error("backward: the loss does not depend on any parameter of the graph `{graph}`, so there is nothing to train")]
    NothingToTrain { graph: String },
    /// A normalisation over the rows of a batch for which the last batch of an epoch, of `n_last` rows, leaves one value per
    /// channel.
    #[error(
        "{op}: {n_rows} rows in batches of {batch_rows} leave a last batch of {n_last}, which gives the normalisation a single value per channel, whose variance does not exist; leave that batch out (`drop_last`), or choose another batch size"
    )]
    OneValue { op: &'static str, n_rows: usize, batch_rows: usize, n_last: usize },
    /// An operation that is not valid in the state `found`, such as one that is recorded in the wrong order.
    #[error("{op}: {found}, expected {expected}")]
    Refused { op: &'static str, found: String, expected: &'static str },
    /// An error of the program, of a kernel or of a device.
    #[error(transparent)]
    Program(#[from] brisk_program::Error),
}

impl Error {
    /// The error without its place.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::{Error, Graph};
    ///
    /// let graph = Graph::inference("sums");
    /// graph.constant("x", &[1.0; 6], &[2, 3]).sum(2);
    /// let error = graph.check().expect_err("there is no dimension 2");
    /// assert!(matches!(error.kind(), Error::Shape { op: "sum", .. }));
    /// ```
    pub fn kind(&self) -> &Self {
        match self {
            Self::At { error, .. } => error,
            error => error,
        }
    }

    /// Where the operation was recorded, if this is an error of recording.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::At { place, .. } => Some(place),
            _ => None,
        }
    }
}
