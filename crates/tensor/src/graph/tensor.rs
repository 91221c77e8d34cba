use brisk_kernels::DType;
use brisk_program::Slice;

use crate::error::Error;
use crate::graph::Graph;

/// A value of a graph: a shape, and the buffer that holds it when the program runs. Clones are the same value.
///
/// Tensors are row-major and contiguous. Operations are methods, and the operators `+`, `-`, `*` and `/` are elementwise, with
/// numbers on either side.
///
/// # Errors
/// No operation returns a `Result`. One that is refused returns a [failed](Self::is_failed) tensor, and its graph keeps the first
/// error, with the caller's file and line, for [`Graph::check`], [`Graph::backward`] and [`Graph::compile`] to return. The errors
/// that are listed for each operation are errors in this sense.
///
/// # Examples
/// ```
/// use brisk_tensor::Graph;
///
/// let graph = Graph::inference("standardised");
/// let x = graph.constant("x", &[1.0, 2.0, 3.0, 4.0, 5.0, 9.0], &[2, 3]);
/// let y = (&x - x.mean(0)) / (x.std(0, 1) + 1e-5);
/// assert_eq!(y.shape(), [2, 3]);
/// graph.check()?;
/// # Ok::<(), brisk_tensor::Error>(())
/// ```
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

    /// The lengths of its dimensions; empty for a single number. For a [failed](Self::is_failed) tensor it is a guess.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn n_elements(&self) -> usize {
        self.slice.len()
    }

    /// The dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.slice.dtype()
    }

    /// The graph it belongs to.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its buffer in the graph's program, for kernels that the caller records.
    pub fn slice(&self) -> Slice {
        self.slice
    }

    /// How many operations that read it have been recorded so far, which says whether a function used a tensor that it was given.
    pub fn n_readers(&self) -> usize {
        self.graph.inner().nodes[self.id].n_uses
    }

    /// Whether it is a parameter that a loss depends on whose backward pass has been recorded.
    pub fn has_gradient(&self) -> bool {
        self.graph.inner().nodes[self.id].has_gradient
    }

    /// The same elements in another shape; no kernel runs.
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of elements differs.
    /// # Reference
    /// `torch.Tensor.view`.
    #[track_caller]
    pub fn reshape(&self, shape: &[usize]) -> Self {
        if n_elements(shape) != Some(self.n_elements()) {
            let expected = format!("{} elements", self.n_elements());
            return self.refused(Error::Shape { op: "reshape", arg: "shape", expected, found: shape.to_vec() }, shape);
        }
        Self { shape: shape.to_vec(), ..self.clone() }
    }

    pub(crate) fn check_shape(&self, op: &'static str, arg: &'static str, shape: &[usize]) -> Result<(), Error> {
        if self.shape() == shape {
            return Ok(());
        }
        Err(Error::Shape { op, arg, expected: format!("{shape:?}"), found: self.shape().to_vec() })
    }

    /// Checks that it has `n` elements, as an input of shape `x` requires.
    pub(crate) fn check_len(&self, op: &'static str, arg: &'static str, x: &[usize], n: usize) -> Result<(), Error> {
        if self.n_elements() == n {
            return Ok(());
        }
        let expected = format!("{n} elements for an input of shape {x:?}");
        Err(Error::Shape { op, arg, expected, found: self.shape().to_vec() })
    }

    /// Checks that it holds numbers of classes, entries or rows.
    pub(crate) fn check_codes(&self, op: &'static str, arg: &'static str) -> Result<(), Error> {
        if self.dtype() == DType::U32 {
            return Ok(());
        }
        let expected = "u32, such as that of `Graph::constant_codes`; a float can be cast to it";
        Err(Error::Dtype { op, arg, expected, found: self.dtype() })
    }

    /// The rows and columns of a matrix.
    pub(crate) fn matrix(&self, op: &'static str, arg: &'static str) -> Result<(usize, usize), Error> {
        match *self.shape() {
            [rows, cols] => Ok((rows, cols)),
            _ => Err(Error::Shape { op, arg, expected: "two dimensions".to_owned(), found: self.shape.clone() }),
        }
    }

    /// The rows along the last dimension: how many there are, and how long each is. A single number is a row of one.
    pub(crate) fn rows_of_last(&self) -> (usize, usize) {
        rows_of_last(&self.shape)
    }

    pub(crate) fn id(&self) -> usize {
        self.id
    }
}

/// The number of elements of a shape, if `usize` can hold it.
pub(crate) fn n_elements(shape: &[usize]) -> Option<usize> {
    if shape.contains(&0) { Some(0) } else { shape.iter().try_fold(1, |n: usize, &len| n.checked_mul(len)) }
}

/// The rows of a shape along its last dimension: how many there are, and how long each is. A single number is a row of one.
pub(crate) fn rows_of_last(shape: &[usize]) -> (usize, usize) {
    let (n_cols, outer) = shape.split_last().map_or((1, shape), |(&n_cols, outer)| (n_cols, outer));
    (outer.iter().copied().fold(1, usize::saturating_mul), n_cols)
}

/// The lengths of `N` dimensions.
pub(crate) fn dims<const N: usize>(shape: &[usize]) -> [usize; N] {
    shape.try_into().expect("`output_shape` has checked the number of dimensions")
}
