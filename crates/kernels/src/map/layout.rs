//! Broadcasting: which element of an input belongs to which element of the outputs.

use super::map_input::{MapInput, contiguous_strides};
use crate::error::{Error, check_supported};

/// The shape that `shapes` broadcast to by NumPy's rules: aligned at the last dimension, sizes 1 and missing dimensions repeat.
///
/// # Errors
/// [`Error::Unsupported`] if two sizes of a dimension differ and neither is 1.
///
/// # Examples
/// ```
/// assert_eq!(brisk_kernels::broadcast_shapes(&[&[5, 1, 3], &[4, 1]])?, [5, 4, 3]);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
pub fn broadcast_shapes(shapes: &[&[usize]]) -> Result<Vec<usize>, Error> {
    let n_dims = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut broadcast = vec![1; n_dims];
    for shape in shapes {
        for (to, &size) in broadcast[n_dims - shape.len()..].iter_mut().zip(*shape) {
            if *to == 1 {
                *to = size;
            }
            let expected = "sizes that are equal or 1, from the last dimension on";
            check_supported("map", size == 1 || size == *to, || format!("shapes {shapes:?}"), expected)?;
        }
    }
    Ok(broadcast)
}

/// How the elements of an input are indexed by those of the outputs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pattern {
    /// One element for all outputs.
    One,
    /// The element with the same index.
    All,
    /// The element at `offset` plus the index times a stride in each dimension of the layout; 0 where the input repeats.
    Strided { offset: usize, strides: Vec<usize> },
}

impl Pattern {
    fn new(sizes: &[usize], offset: usize, strides: Vec<usize>) -> Self {
        match offset {
            0 if strides == contiguous_strides(sizes) => Self::All,
            0 if strides.iter().all(|stride| *stride == 0) => Self::One,
            _ => Self::Strided { offset, strides },
        }
    }

    /// Its strides, if it needs them.
    pub(crate) fn strides(&self) -> Option<&[usize]> {
        match self {
            Self::Strided { strides, .. } => Some(strides),
            Self::One | Self::All => None,
        }
    }
}

/// The dimensions of the outputs, adjacent ones merged if contiguous in every input, and how each input is indexed in them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// Outermost first; none of size 1.
    pub(crate) sizes: Vec<usize>,
    pub(crate) patterns: Vec<Pattern>,
}

impl Layout {
    pub(crate) fn new(shape: &[usize], inputs: &[MapInput]) -> Result<Self, Error> {
        for (i, MapInput { shape: own, strides, offset, len, .. }) in inputs.iter().enumerate() {
            let fits =
                own.len() <= shape.len() && own.iter().rev().zip(shape.iter().rev()).all(|(own, size)| *own == 1 || own == size);
            let found = || format!("`x{i}` of shape {own:?}, which does not broadcast to {shape:?}");
            let expected = "sizes that are equal or 1, from the last dimension on, and no more dimensions than the outputs";
            check_supported("map", fits, found, expected)?;
            let found =
                || format!("`x{i}` of shape {own:?}, with strides {strides:?} from element {offset} on, of {len} elements");
            let expected = "a stride for each dimension, and no element beyond the last";
            check_supported("map", inputs[i].is_within_argument(), found, expected)?;
        }
        // For each dimension, the stride of each input.
        let mut sizes: Vec<usize> = Vec::new();
        let mut strides: Vec<Vec<usize>> = Vec::new();
        for (dim, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let of_dim: Vec<usize> = inputs.iter().map(|input| stride(input, shape.len() - dim)).collect();
            match (sizes.last_mut(), strides.last_mut()) {
                (Some(last), Some(of_last)) if of_last.iter().zip(&of_dim).all(|(outer, inner)| *outer == inner * size) => {
                    *last *= size;
                    *of_last = of_dim;
                }
                _ => {
                    sizes.push(size);
                    strides.push(of_dim);
                }
            }
        }
        let patterns = inputs.iter().enumerate().map(|(i, input)| {
            let own = strides.iter().map(|of_dim| of_dim[i]).collect();
            Pattern::new(&sizes, input.offset, own)
        });
        let patterns = patterns.collect();
        Ok(Self { sizes, patterns })
    }
}

impl Layout {
    /// The maximum number of dimensions.
    pub(crate) const MAX_DIMS: usize = 6;

    pub(crate) fn check(&self, kernel: &'static str) -> Result<(), Error> {
        let n_dims = self.sizes.len();
        let found = || format!("a shape with {n_dims} dimensions that cannot be merged");
        check_supported(kernel, n_dims <= Self::MAX_DIMS, found, "at most 6")
    }
}

/// The stride of an input in the dimension that is number `from_end` from the end, counted from 1; 0 if it repeats.
fn stride(input: &MapInput, from_end: usize) -> usize {
    match input.shape.len().checked_sub(from_end) {
        Some(dim) if input.shape[dim] != 1 => input.strides[dim],
        _ => 0,
    }
}
