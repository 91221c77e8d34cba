//! Gradients that are sent in 16 bits, and their rounding errors.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use brisk_replicate::{Compressed, Wire};

/// How elements of a buffer are sent, and the rounding errors of this replica.
#[derive(Debug)]
pub(crate) struct Conversion {
    elements: Range<usize>,
    compressed: Mutex<Compressed>,
}

impl Conversion {
    /// For `n_sent` values: the elements, and what is sent after them.
    pub(crate) fn new(wire: Wire, elements: Range<usize>, n_sent: usize) -> Arc<Self> {
        Arc::new(Self { elements, compressed: Mutex::new(Compressed::new(wire, n_sent)) })
    }

    pub(crate) fn elements(&self) -> Range<usize> {
        self.elements.clone()
    }

    pub(crate) fn with<T>(&self, f: impl FnOnce(&mut Compressed) -> T) -> T {
        f(&mut self.compressed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
