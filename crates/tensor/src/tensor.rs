use brisk_kernels::DType;
use brisk_program::Slice;

use crate::{Error, Graph};

/// A value of a graph: a shape and the buffer it will be in when the program runs. Clones are the same value.
///
/// Shapes are row-major. Operations are methods, each in the file of its name.
#[derive(Debug, Clone)]
pub struct Tensor {
    graph: Graph,
    id: usize,
    slice: Slice,
    shape: Vec<usize>,
}

impl Tensor {
    pub(crate) fn new(graph: Graph, id: usize, slice: Slice, shape: Vec<usize>) -> Self {
        Self { graph, id, slice, shape }
    }

    /// The lengths of its dimensions; empty for one number.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements.
    pub fn n_elements(&self) -> usize {
        self.shape.iter().product()
    }

    /// The type of its elements.
    pub fn dtype(&self) -> DType {
        self.slice.dtype()
    }

    /// The graph it belongs to.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where its values are in the graph's program, for kernels of one's own.
    pub fn slice(&self) -> Slice {
        self.slice
    }

    /// The same elements in another shape; no kernel runs.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of elements differs.
    /// # Reference
    /// `torch.Tensor.view`.
    pub fn reshape(&self, shape: &[usize]) -> Result<Self, Error> {
        if shape.iter().product::<usize>() != self.n_elements() {
            let expected = format!("{} elements", self.n_elements());
            return Err(Error::Shape { op: "reshape", arg: "shape", expected, found: shape.to_vec() });
        }
        Ok(Self { shape: shape.to_vec(), ..self.clone() })
    }

    /// Whether `b` is of the same graph and shape.
    pub(crate) fn check_same_shape(&self, op: &'static str, b: &Self) -> Result<(), Error> {
        self.graph.check_own(op, "b", b)?;
        if self.shape() == b.shape() {
            return Ok(());
        }
        let expected = format!("{:?}, as the first has", self.shape());
        Err(Error::Shape { op, arg: "b", expected, found: b.shape().to_vec() })
    }

    /// The two lengths of a matrix.
    pub(crate) fn matrix(&self, op: &'static str, arg: &'static str) -> Result<(usize, usize), Error> {
        match *self.shape() {
            [rows, cols] => Ok((rows, cols)),
            _ => Err(Error::Shape { op, arg, expected: "two dimensions".to_owned(), found: self.shape.clone() }),
        }
    }

    /// The elements as rows along the last dimension: how many there are, and how long. One number is a row of one.
    pub(crate) fn rows_of_last(&self) -> (usize, usize) {
        let n_cols = self.shape.last().copied().unwrap_or(1);
        (self.shape[..self.shape.len().saturating_sub(1)].iter().product(), n_cols)
    }

    pub(crate) fn id(&self) -> usize {
        self.id
    }
}
