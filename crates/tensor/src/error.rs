use brisk_kernels::DType;

/// Why an operation could not be recorded. On `Err` the graph is as before.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
    /// An override for an operation that is not there.
    #[error("autocast: there is no operation `{found}`; those that there are: {known}")]
    UnknownOperation {
        /// What was given.
        found: String,
        /// All there are.
        known: String,
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
