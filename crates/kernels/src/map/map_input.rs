use std::ops::Range;

use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::random::draws::Draws;
use crate::run_state::STATE_LEN;

/// An input of a [`Map`](crate::Map): its shape, and the positions of its elements in the argument.
///
/// # Examples
/// ```
/// use brisk_kernels::expr::Expr;
/// use brisk_kernels::{DType, Kernel, Map, MapInput, MapOutput};
///
/// // The transpose of a matrix, as a copy.
/// let x = MapInput::new(&[3, 5], DType::F32).permuted(&[1, 0])?;
/// assert_eq!((&x.shape[..], &x.strides[..]), (&[5, 3][..], &[1, 5][..]));
/// let y = MapOutput { expr: Expr::input(0), dtype: DType::F32 };
/// let transpose = Map { shape: vec![5, 3], inputs: vec![x], outputs: vec![y] };
/// transpose.check()?;
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapInput {
    /// Its own shape, which broadcasts to that of the outputs.
    pub shape: Vec<usize>,
    /// For each dimension, the distance between neighbours in elements.
    pub strides: Vec<usize>,
    /// The first element.
    pub offset: usize,
    /// Elements of the argument.
    pub len: usize,
    /// The element type in memory.
    pub dtype: DType,
    /// The random numbers that the elements are. The argument is then the state of the run, and all else is as
    /// [`uniform`](Self::uniform) makes it.
    pub draws: Option<Draws>,
}

impl MapInput {
    /// All elements of an argument, in row-major order.
    pub fn new(shape: &[usize], dtype: DType) -> Self {
        Self { shape: shape.to_vec(), strides: contiguous_strides(shape), offset: 0, len: n_elements(shape), dtype, draws: None }
    }

    /// Random numbers, uniform in `[0, 1)`, of the shape of the outputs; the argument is the state of the run, [`STATE_LEN`] u32.
    pub fn uniform(shape: &[usize], draws: Draws) -> Self {
        Self { len: STATE_LEN, draws: Some(draws), ..Self::new(shape, DType::U32) }
    }

    /// The same elements in a different shape of as many elements, if they are contiguous.
    pub(crate) fn reshaped(&self, shape: &[usize]) -> Self {
        Self { len: self.len, draws: self.draws, ..Self::new(shape, self.dtype) }
    }

    /// The same elements with their dimensions permuted: the new dimension `i` is the old dimension `dims[i]`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] unless `dims` names each dimension once.
    pub fn permuted(&self, dims: &[usize]) -> Result<Self, Error> {
        let n_dims = self.shape.len();
        let is_permutation = dims.len() == n_dims && (0..n_dims).all(|dim| dims.contains(&dim));
        let found = || format!("the order {dims:?} of the dimensions of shape {:?}", self.shape);
        check_supported("map", is_permutation, found, "each dimension once")?;
        let pick = |of: &[usize]| dims.iter().map(|&dim| of[dim]).collect();
        Ok(Self { shape: pick(&self.shape), strides: pick(&self.strides), ..*self })
    }

    /// The elements of `range` along dimension `dim`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if there is no such dimension, or the range is empty or beyond it.
    pub fn narrowed(&self, dim: usize, range: Range<usize>) -> Result<Self, Error> {
        let is_inside = self.shape.get(dim).is_some_and(|&size| range.end <= size) && !range.is_empty();
        let found = || format!("{range:?} along dimension {dim} of shape {:?}", self.shape);
        check_supported("map", is_inside, found, "a range within the dimension, not empty")?;
        let mut narrowed = self.clone();
        narrowed.shape[dim] = range.len();
        narrowed.offset += range.start * self.strides[dim];
        Ok(narrowed)
    }

    /// Checks that there is a stride for each dimension, and that every element is within the argument.
    pub(crate) fn is_within_argument(&self) -> bool {
        if self.draws.is_some() {
            return true;
        }
        let last = self.shape.iter().zip(&self.strides).try_fold(self.offset, |last, (size, stride)| {
            size.saturating_sub(1).checked_mul(*stride).and_then(|more| last.checked_add(more))
        });
        self.shape.len() == self.strides.len() && (last.is_some_and(|last| last < self.len) || self.shape.contains(&0))
    }
}

/// The number of elements of a shape; saturates at `usize::MAX`.
pub(crate) fn n_elements(shape: &[usize]) -> usize {
    if shape.contains(&0) { 0 } else { shape.iter().fold(1, |len: usize, size| len.saturating_mul(*size)) }
}

/// The strides of a row-major array.
pub(crate) fn contiguous_strides(shape: &[usize]) -> Vec<usize> {
    let mut stride: usize = 1;
    let mut strides: Vec<usize> = shape
        .iter()
        .rev()
        .map(|size| {
            let own = stride;
            stride = stride.saturating_mul(*size);
            own
        })
        .collect();
    strides.reverse();
    strides
}
