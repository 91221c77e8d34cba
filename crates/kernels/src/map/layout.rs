//! Broadcasting: which element of an input belongs to which element of the outputs.

use crate::Error;

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
            } else if size != 1 && size != *to {
                let found = format!("shapes {shapes:?}");
                return Err(Error::Unsupported {
                    kernel: "map",
                    found,
                    expected: "sizes that are equal or 1, from the last dimension on",
                });
            }
        }
    }
    Ok(broadcast)
}

/// How the elements of an input lie, seen from the outputs.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Pattern {
    /// One element for all.
    One,
    /// Element for element.
    All,
    /// By a stride in each dimension of the layout, 0 where it repeats.
    Strided(Vec<usize>),
}

/// The dimensions of the outputs, neighbours that no input tells apart taken as one, and how each input lies in them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Layout {
    /// Outermost first; none of size 1.
    pub(super) sizes: Vec<usize>,
    pub(super) patterns: Vec<Pattern>,
}

impl Layout {
    pub(super) fn new(shape: &[usize], inputs: &[&[usize]]) -> Result<Self, Error> {
        for (i, input) in inputs.iter().enumerate() {
            let fits = input.len() <= shape.len()
                && input.iter().rev().zip(shape.iter().rev()).all(|(own, size)| *own == 1 || own == size);
            if !fits {
                let found = format!("`x{i}` of shape {input:?}, which does not broadcast to {shape:?}");
                let expected = "sizes that are equal or 1, from the last dimension on, and no more dimensions than the outputs";
                return Err(Error::Unsupported { kernel: "map", found, expected });
            }
        }
        // For each dimension, which inputs repeat in it.
        let mut sizes: Vec<usize> = Vec::new();
        let mut repeats: Vec<Vec<bool>> = Vec::new();
        for (dim, &size) in shape.iter().enumerate().filter(|(_, size)| **size != 1) {
            let from_end = shape.len() - dim;
            let is_repeated = |input: &&[usize]| input.len() < from_end || input[input.len() - from_end] == 1;
            let of_dim: Vec<bool> = inputs.iter().map(is_repeated).collect();
            match sizes.last_mut() {
                Some(last) if repeats.last() == Some(&of_dim) => *last *= size,
                _ => {
                    sizes.push(size);
                    repeats.push(of_dim);
                }
            }
        }
        let patterns =
            (0..inputs.len()).map(|input| pattern(&sizes, repeats.iter().map(|of_dim| of_dim[input]).collect())).collect();
        Ok(Self { sizes, patterns })
    }
}

fn pattern(sizes: &[usize], repeats: Vec<bool>) -> Pattern {
    if repeats.iter().all(|repeat| !repeat) {
        return Pattern::All;
    }
    if repeats.iter().all(|repeat| *repeat) {
        return Pattern::One;
    }
    let mut stride = 1;
    let mut strides = vec![0; sizes.len()];
    for (dim, _) in repeats.iter().enumerate().rev().filter(|(_, repeat)| !**repeat) {
        strides[dim] = stride;
        stride *= sizes[dim];
    }
    Pattern::Strided(strides)
}
