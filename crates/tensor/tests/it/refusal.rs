//! The errors of graphs for operations that they refuse.

use std::panic::Location;

use brisk_tensor::{DType, Error, Graph, Persistent, Tensor};

/// A parameter in its own buffers.
pub(crate) fn parameter(graph: &Graph, shape: &[usize]) -> Tensor {
    let n = shape.iter().product();
    let (values, grads) = (Persistent::new("values", DType::F32, n), Persistent::new("grads", DType::F32, n));
    graph.parameter(&values, &grads, 0..n, shape)
}

/// Checks that the operation that `record` records into a new graph, `net`, is refused with this message and the caller's file,
/// and that no kernel is recorded.
#[track_caller]
pub(crate) fn check_refused(record: impl FnOnce(&Graph) -> Tensor, message: &str) {
    let error = refusal(record);
    assert_eq!(error.kind().to_string(), message, "{error:?}");
}

/// The error of the operation that `record` records into a new graph.
#[track_caller]
pub(crate) fn refusal(record: impl FnOnce(&Graph) -> Tensor) -> Error {
    let graph = Graph::training("net");
    let result = record(&graph);
    assert!(result.is_failed(), "the operation is refused");
    let refusing = result.graph();
    let error = refusing.check().expect_err("the operation is refused");
    let place = error.place().expect("errors of recording have a place");
    assert_eq!(place.location().file(), Location::caller().file(), "every function on the way is `#[track_caller]`");
    for graph in [&graph, refusing] {
        assert_eq!(n_kernels(graph), 0, "nothing was recorded");
    }
    error
}

pub(crate) fn n_kernels(graph: &Graph) -> usize {
    graph.with_program(|program| program.n_kernels())
}
