use std::ops::{Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::error::Error;
use crate::graph::tensor::Tensor;

/// The dimensions that a reduction goes over, and whether they stay with length 1.
///
/// Converted from a range (`..`, `1..`, `0..2`), a number or an array of numbers.
///
/// # Examples
/// ```
/// use brisk_tensor::{Dims, Graph};
///
/// let graph = Graph::inference("reductions");
/// let x = graph.constant("x", &[1.0; 24], &[2, 3, 4]);
/// assert_eq!(x.sum(..).shape(), [0; 0]);
/// assert_eq!(x.sum(1).shape(), [2, 4]);
/// assert_eq!(x.sum([0, 2]).shape(), [3]);
/// assert_eq!(x.sum(Dims::from([0, 2]).keep()).shape(), [1, 3, 1]);
/// # Ok::<(), brisk_tensor::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dims {
    chosen: Chosen,
    is_kept: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Chosen {
    Range(Bound<usize>, Bound<usize>),
    Each(Vec<usize>),
}

impl Dims {
    /// Keeps the dimensions in the result with length 1: PyTorch's `keepdim=True`.
    pub fn keep(self) -> Self {
        Self { is_kept: true, ..self }
    }

    fn range(range: impl RangeBounds<usize>) -> Self {
        Self { chosen: Chosen::Range(range.start_bound().cloned(), range.end_bound().cloned()), is_kept: false }
    }

    /// The dimensions for a given tensor `x`.
    pub(crate) fn of(&self, op: &'static str, x: &Tensor) -> Result<Reduced, Error> {
        let (shape, n_dims) = (x.shape(), x.shape().len());
        let refused = |expected: String| Err(Error::Shape { op, arg: "x", expected, found: shape.to_vec() });
        let mut is_reduced = vec![false; n_dims];
        match &self.chosen {
            Chosen::Range(start, end) => {
                let start = match *start {
                    Bound::Unbounded => 0,
                    Bound::Included(start) => start,
                    Bound::Excluded(before) => before.saturating_add(1),
                };
                let end = match *end {
                    Bound::Unbounded => n_dims,
                    Bound::Included(last) => last.saturating_add(1),
                    Bound::Excluded(end) => end,
                };
                // A single number may be reduced over all of its dimensions, of which it has none.
                if end > n_dims || start >= end && !(n_dims == 0 && start == end) {
                    return refused(format!("dimensions {start}..{end} of it, at least one"));
                }
                is_reduced[start..end].fill(true);
            }
            Chosen::Each(dims) => {
                for &dim in dims {
                    match is_reduced.get_mut(dim) {
                        Some(is_reduced) if !*is_reduced => *is_reduced = true,
                        Some(_) => return refused(format!("dimensions {dims:?} of it, each once")),
                        None => return refused(format!("a dimension {dim}")),
                    }
                }
            }
        }
        Ok(Reduced { is_reduced, is_kept: self.is_kept })
    }
}

/// Dimensions of a given tensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Reduced {
    is_reduced: Vec<bool>,
    is_kept: bool,
}

impl Reduced {
    /// The dimensions in which `part` repeats when it broadcasts to `whole`.
    pub(crate) fn of_broadcast(part: &[usize], whole: &[usize]) -> Self {
        let n_missing = whole.len() - part.len();
        let is_repeated = |dim: usize| dim < n_missing || part[dim - n_missing] != whole[dim];
        Self { is_reduced: (0..whole.len()).map(is_repeated).collect(), is_kept: true }
    }

    /// The shape of the result.
    pub(crate) fn shape(&self, x: &[usize]) -> Vec<usize> {
        if self.is_kept { self.kept_shape(x) } else { self.pick(x, false) }
    }

    /// The shape of the result if dimensions stay with length 1.
    pub(crate) fn kept_shape(&self, x: &[usize]) -> Vec<usize> {
        x.iter().zip(&self.is_reduced).map(|(&len, &is_reduced)| if is_reduced { 1 } else { len }).collect()
    }

    /// The number of elements that each result reduces.
    pub(crate) fn n(&self, x: &[usize]) -> usize {
        self.pick(x, true).iter().product()
    }

    fn pick(&self, x: &[usize], reduced: bool) -> Vec<usize> {
        x.iter().zip(&self.is_reduced).filter(|(_, is_reduced)| **is_reduced == reduced).map(|(&len, _)| len).collect()
    }

    /// The numbers of the dimensions that are reduced.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        (0..self.is_reduced.len()).filter(|&dim| self.is_reduced[dim]).collect()
    }
}

macro_rules! from_range {
    ($($range:ty),*) => {
        $(impl From<$range> for Dims {
            fn from(range: $range) -> Self {
                Self::range(range)
            }
        })*
    };
}

from_range!(RangeFull, Range<usize>, RangeFrom<usize>, RangeTo<usize>, RangeInclusive<usize>, RangeToInclusive<usize>);

impl From<usize> for Dims {
    fn from(dim: usize) -> Self {
        [dim].into()
    }
}

impl<const N: usize> From<[usize; N]> for Dims {
    fn from(dims: [usize; N]) -> Self {
        dims[..].into()
    }
}

impl From<&[usize]> for Dims {
    fn from(dims: &[usize]) -> Self {
        Self { chosen: Chosen::Each(dims.to_vec()), is_kept: false }
    }
}
