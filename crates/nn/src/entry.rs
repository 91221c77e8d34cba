use std::ops::Range;

/// The maximum number of elements of a tensor, and of all parameters together. The bytes of values, gradients and optimizer state
/// can then be added up without overflow.
pub(crate) const MAX_LEN: usize = usize::MAX / 64;

/// A parameter: its name, its shape and its place in the flat buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Dotted, as in PyTorch's `state_dict`: `layers.0.weight`.
    pub name: String,
    /// Lengths of its dimensions.
    pub shape: Vec<usize>,
    /// Its elements in the flat buffer.
    pub range: Range<usize>,
}

impl Entry {
    /// The layer that it belongs to: its name without the last part, `layers.0` for `layers.0.weight`.
    pub fn path(&self) -> &str {
        self.name.rsplit_once('.').map_or("", |(path, _)| path)
    }
}

/// The elements of a tensor, unless their number overflows.
pub(crate) fn len_of(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1_usize, |len, &n| len.checked_mul(n)).filter(|&len| len <= MAX_LEN)
}
