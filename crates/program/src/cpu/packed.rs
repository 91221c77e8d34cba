//! Operands in the order in which kernels multiply them, kept while the buffer does not change: the weights of a network that is evaluated or makes predictions.

use std::ops::Range;
use std::sync::Arc;

use brisk_kernels::{Packing, bytemuck};

use crate::device::memory::Count;

/// The copies of a persistent buffer. All programs of the device share them.
#[derive(Debug, Default)]
pub(crate) struct PackedCopies {
    copies: Vec<PackedCopy>,
}

#[derive(Debug)]
struct PackedCopy {
    part: Part,
    data: Arc<Vec<f32>>,
    /// Whether it is a copy of what the buffer now has.
    is_current: bool,
    _count: Count,
}

/// A range of bytes of a buffer, and the order of its copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) bytes: Range<usize>,
    pub(crate) packing: Packing,
}

impl PackedCopies {
    /// Makes room for a copy of `part`, if there is none yet. `count` returns what counts its bytes as allocated; if there is no memory for it, there is no copy.
    pub(crate) fn add(&mut self, part: &Part, count: impl FnOnce(usize) -> Option<Count>) {
        if self.copies.iter().any(|copy| copy.part == *part) {
            return;
        }
        let len = part.packing.len();
        if let Some(count) = count(len * size_of::<f32>()) {
            let data = Arc::new(vec![0.0; len]);
            self.copies.push(PackedCopy { part: part.clone(), data, is_current: false, _count: count });
        }
    }

    /// Called when the buffer has been written.
    pub(crate) fn expire(&mut self) {
        self.copies.iter_mut().for_each(|copy| copy.is_current = false);
    }

    /// The copy of `part` of the buffer `bytes`, made again if the buffer has changed.
    pub(crate) fn current(&mut self, part: &Part, bytes: &[u8]) -> Option<Arc<Vec<f32>>> {
        let copy = self.copies.iter_mut().find(|copy| copy.part == *part)?;
        if !copy.is_current {
            // Nobody else holds it: runs exclude each other.
            part.packing.pack(bytemuck::cast_slice(&bytes[part.bytes.clone()]), Arc::get_mut(&mut copy.data)?);
            copy.is_current = true;
        }
        Some(copy.data.clone())
    }
}
