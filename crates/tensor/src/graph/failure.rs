//! Errors of recording: the graph keeps the first one until the caller asks for it.

use brisk_kernels::{DType, Kernel};
use brisk_program::{Program, Slice};

use crate::error::Error;
use crate::graph::node::Node;
use crate::graph::tensor::{Tensor, n_elements};
use crate::graph::{Graph, stored};
use crate::place::Place;

/// # Errors of recording
///
/// Recording returns no `Result`. An operation that is refused, such as for the shape of an operand, returns a tensor that is
/// marked as [failed](Tensor::is_failed), and so does every operation on that tensor. The graph keeps the first error with the
/// [place](crate::Place) where it occurred: [`check`](Self::check), [`backward`](Self::backward) and [`compile`](Self::compile)
/// return it. If the last handle of a graph is dropped before that, the error is written to standard error.
impl Graph {
    /// Checks that everything recorded so far is valid.
    ///
    /// # Errors
    /// The first error, as [`Error::At`].
    /// # Examples
    /// ```
    /// use brisk_tensor::{Error, Graph, Transpose};
    ///
    /// let graph = Graph::inference("product");
    /// let x = graph.constant("x", &[1.0; 6], &[2, 3]);
    /// let y = x.matmul(&x, Transpose::None).exp().sum(..);
    /// assert!(y.is_failed());
    /// let error = graph.check().expect_err("the rows of the second are not as many as the columns of the first");
    /// assert!(error.to_string().starts_with("matmul: `b` has shape [2, 3], expected [3, _] (at "));
    /// assert!(matches!(error.kind(), Error::Shape { op: "matmul", .. }));
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        self.inner().first_error.get().map_or(Ok(()), Err)
    }

    /// Keeps `error` as the graph's error, unless there is one. For functions that record operations and refuse their arguments.
    #[track_caller]
    pub fn fail(&self, error: impl Into<Error>) {
        let error = self.placed(error.into());
        self.inner_mut().first_error.error.get_or_insert(error);
    }

    /// [`fail`](Self::fail), for functions that return a tensor: one of this dtype and shape, marked as failed.
    #[track_caller]
    pub fn failed(&self, error: impl Into<Error>, dtype: DType, shape: &[usize]) -> Tensor {
        self.fail(error);
        self.failed_tensor(dtype, shape)
    }

    /// The value of a result; its error is [kept](Self::fail).
    #[track_caller]
    pub(crate) fn catch<T>(&self, result: Result<T, impl Into<Error>>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.fail(error);
                None
            }
        }
    }

    /// Records custom kernels: `f` gets the program. Its error is [kept](Self::fail). After an error `f` is not called.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::{DType, Graph, Persistent};
    /// use brisk_tensor::program::kernels::Map;
    ///
    /// let graph = Graph::inference("squares");
    /// let (x, y) = (Persistent::new("x", DType::F32, 4), Persistent::new("y", DType::F32, 4));
    /// graph.record(|program| {
    ///     let [x, y] = [&x, &y].map(|buffer| program.persistent(buffer));
    ///     program.push(Map::binary(4, |a, b| a * b), &[x, x, y])
    /// });
    /// graph.check()?;
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn record<E: Into<Error>>(&self, f: impl FnOnce(&mut Program) -> Result<(), E>) {
        if self.inner().first_error.error.is_none() {
            let recorded = self.with_program(f);
            self.catch(recorded);
        }
    }

    /// Records a custom kernel over slices of the graph's program, in the form for their dtypes. An error is [kept](Self::fail).
    #[track_caller]
    pub fn push(&self, kernel: impl Kernel, args: &[Slice]) {
        self.record(|program| stored::push(program, kernel, args));
    }

    /// `error` with the place of the caller.
    #[track_caller]
    pub(crate) fn placed(&self, error: Error) -> Error {
        if matches!(error, Error::At { .. }) {
            return error;
        }
        let inner = self.inner();
        let place = Place::caller(&inner.scopes, inner.outer);
        Error::At { error: Box::new(error), place }
    }

    /// A tensor that is marked as failed. Lengths whose product overflows become 0.
    pub(crate) fn failed_tensor(&self, dtype: DType, shape: &[usize]) -> Tensor {
        let (n, shape) = match n_elements(shape) {
            Some(n) => (n, shape.to_vec()),
            None => (0, vec![0; shape.len()]),
        };
        let slice = self.transient("failed", dtype, n);
        self.add_node(Node { is_failed: true, ..Node::of(slice, &shape) })
    }
}

impl Tensor {
    /// Whether the operation that made this tensor or one before it was refused. [`Graph::check`] returns the first error.
    pub fn is_failed(&self) -> bool {
        self.graph().inner().nodes[self.id()].is_failed
    }

    /// A failed tensor of this dtype and another shape, for an operation on this tensor that was refused.
    #[track_caller]
    pub(crate) fn refused(&self, error: Error, shape: &[usize]) -> Self {
        self.graph().failed(error, self.dtype(), shape)
    }
}
