use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A slice of a vector whose clones share memory, so that checkpoints of the same moment keep their common values only once. It dereferences to `[T]`.
///
/// # Examples
/// ```
/// use brisk_train::SharedSlice;
///
/// let values = SharedSlice::from(vec![1.0_f32, 2.0, 3.0]);
/// let last = values.slice(1..3);
/// assert_eq!(last[..], [2.0, 3.0]);
/// ```
#[derive(Clone)]
pub struct SharedSlice<T> {
    vec: Arc<Vec<T>>,
    range: Range<usize>,
}

impl<T> SharedSlice<T> {
    /// A part of it, without copying.
    ///
    /// # Panics
    /// If the range reaches beyond the end, as for slices.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let len = self[range.clone()].len();
        let start = self.range.start + range.start;
        Self { vec: Arc::clone(&self.vec), range: start..start + len }
    }

    /// The values, to change them, if no other slice shares their memory.
    pub(crate) fn get_mut(&mut self) -> Option<&mut [T]> {
        let Self { vec, range } = self;
        Some(&mut Arc::get_mut(vec)?[range.clone()])
    }
}

impl<T> Deref for SharedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.vec[self.range.clone()]
    }
}

impl<T> From<Vec<T>> for SharedSlice<T> {
    fn from(vec: Vec<T>) -> Self {
        Self { range: 0..vec.len(), vec: Arc::new(vec) }
    }
}

impl<'s, T> IntoIterator for &'s SharedSlice<T> {
    type Item = &'s T;
    type IntoIter = std::slice::Iter<'s, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for SharedSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: fmt::Debug> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
