use brisk_kernels::DType;

use crate::Place;

/// Why an operation could not be recorded.
///
/// Recording returns no errors: [`Graph::check`](crate::Graph::check) and others return the first one, as [`Error::At`] with its [`Place`].
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error with the place where it was made. [`kind`](Self::kind) is the error alone.
    #[error("{error} ({place})")]
    At {
        /// What went wrong; never another `At`.
        error: Box<Self>,
        /// Where the operation was recorded.
        place: Place,
    },
    /// An operand has another shape than the operation needs.
    #[error("{op}: `{arg}` has shape {found:?}, expected {expected}")]
    Shape {
        /// The operation.
        op: &'static str,
        /// The operand.
        arg: &'static str,
        /// What it needs.
        expected: String,
        /// What it got.
        found: Vec<usize>,
    },
    /// Something of a type that it cannot have.
    #[error("{op}: `{arg}` is {found}, expected {expected}")]
    Dtype {
        /// The operation.
        op: &'static str,
        /// What it is of.
        arg: &'static str,
        /// What it may be.
        expected: &'static str,
        /// What it is.
        found: DType,
    },
    /// An override of autocast that applies to no operation.
    #[error("autocast: the override of `{found}` applies to no operation of the region, which records: {recorded}")]
    UnusedOverride {
        /// The name that the override gives.
        found: String,
        /// The operations of the region.
        recorded: String,
    },
    /// A gradient that differs from the slope of its function: [`check_gradients`](crate::check_gradients).
    #[error(
        "check_gradients: with {stored}, the gradient of {} gives a slope of {found} in a random direction, expected {expected} by finite differences",
        .parameter.map_or("all parameters".to_owned(), |i| format!("parameter {i}"))
    )]
    Gradient {
        /// How the parameters are stored.
        stored: String,
        /// The number of the parameter; `None` for all together.
        parameter: Option<usize>,
        /// The slope by the gradient.
        found: f64,
        /// The slope by a finite difference.
        expected: f64,
    },
    /// A backward pass through an operation without one.
    #[error(
        "backward: the operation `{op}` has no gradient; implement `Operation::backward`, or say that it is not differentiable"
    )]
    NotDifferentiable {
        /// The operation.
        op: &'static str,
    },
    /// No precision is named so.
    #[error("there is no precision `{found}`; take f32, f16 or bf16")]
    UnknownPrecision {
        /// What was given.
        found: String,
    },
    /// Operands of two graphs.
    #[error("{op}: `{arg}` belongs to another graph; share values by a `Persistent` that both graphs bind")]
    ForeignTensor {
        /// The operation.
        op: &'static str,
        /// The operand.
        arg: &'static str,
    },
    /// Backward through a graph that keeps no tape.
    #[error("backward: the graph `{graph}` was made for inference and keeps no tape; make it with `Graph::training`")]
    NoTape {
        /// The graph.
        graph: String,
    },
    /// Backward from something that is not one number.
    #[error("backward: the loss has shape {found:?}, expected one number; reduce it first")]
    LossNotScalar {
        /// Its shape.
        found: Vec<usize>,
    },
    /// Backward was recorded before.
    #[error(
        "backward: the graph `{graph}` has its backward pass already; sum the losses and go back once, or go back within `Graph::accumulate`"
    )]
    BackwardTwice {
        /// The graph.
        graph: String,
    },
    /// Nobody looked for anomalies.
    #[error("{op}: the graph `{graph}` looks for none; call `Graph::detect_anomaly` before anything is recorded")]
    NotDetecting {
        /// What was asked.
        op: &'static str,
        /// The graph.
        graph: String,
    },
    /// No parameter that wants a gradient has a part in the loss.
    #[error("backward: no parameter of the graph `{graph}` has a part in the loss, so there is nothing to train")]
    NothingToTrain {
        /// The graph.
        graph: String,
    },
    /// An operation that makes no sense here, such as one that is recorded out of its turn.
    #[error("{op}: {found}, expected {expected}")]
    Refused {
        /// The operation.
        op: &'static str,
        /// What there is.
        found: String,
        /// What there should be.
        expected: &'static str,
    },
    /// What the program below says.
    #[error(transparent)]
    Program(#[from] brisk_program::Error),
}

impl Error {
    /// What went wrong, without the place.
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
