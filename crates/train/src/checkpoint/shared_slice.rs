use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use brisk_loader::HugePages;
use bytemuck::Pod;

/// Values whose clones share memory, so that checkpoints of one moment keep common values once. It dereferences to `[T]`.
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
    memory: Arc<Memory<T>>,
    range: Range<usize>,
}

enum Memory<T> {
    Vec(Vec<T>),
    HugePages(HugePages<T>),
}

impl<T: Pod> SharedSlice<T> {
    /// `len` zeros in pages of 2 MiB where the system supports them. These are mapped, and copied to, faster than a vector.
    pub(crate) fn zeroed(len: usize) -> Self {
        match HugePages::zeroed(len) {
            Ok(pages) => Self { memory: Arc::new(Memory::HugePages(pages)), range: 0..len },
            Err(_) => vec![T::zeroed(); len].into(),
        }
    }

    /// A part of it, without copying.
    ///
    /// # Panics
    /// If the range reaches beyond the end, as for slices.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        let len = self[range.clone()].len();
        let start = self.range.start + range.start;
        Self { memory: Arc::clone(&self.memory), range: start..start + len }
    }

    /// Mutable access to the values, if no other slice shares their memory.
    pub(crate) fn get_mut(&mut self) -> Option<&mut [T]> {
        let values = match Arc::get_mut(&mut self.memory)? {
            Memory::Vec(values) => &mut values[..],
            Memory::HugePages(values) => values,
        };
        Some(&mut values[self.range.clone()])
    }
}

impl<T: Pod> Deref for SharedSlice<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        let values = match &*self.memory {
            Memory::Vec(values) => &values[..],
            Memory::HugePages(values) => values,
        };
        &values[self.range.clone()]
    }
}

impl<T> From<Vec<T>> for SharedSlice<T> {
    fn from(vec: Vec<T>) -> Self {
        Self { range: 0..vec.len(), memory: Arc::new(Memory::Vec(vec)) }
    }
}

impl<'s, T: Pod> IntoIterator for &'s SharedSlice<T> {
    type Item = &'s T;
    type IntoIter = std::slice::Iter<'s, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: Pod + PartialEq> PartialEq for SharedSlice<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl<T: Pod + fmt::Debug> fmt::Debug for SharedSlice<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
