//! Operands in the order in which kernels multiply them, kept while the buffer does not change: the weights of a network that is
//! evaluated or makes predictions.

use std::ops::Range;
use std::sync::Arc;

use brisk_kernels::{Packing, bytemuck};

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
}

/// A range of bytes of a buffer, and the order of its copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) bytes: Range<usize>,
    pub(crate) packing: Packing,
}

impl PackedCopies {
    /// Called when the buffer has been written.
    pub(crate) fn expire(&mut self) {
        self.copies.iter_mut().for_each(|copy| copy.is_current = false);
    }

    /// The copy of `part` of the buffer `bytes`, made if there is none yet, and again if the buffer has changed.
    pub(crate) fn current(&mut self, part: &Part, bytes: &[u8]) -> Option<Arc<Vec<f32>>> {
        let at = self.copies.iter().position(|copy| copy.part == *part).unwrap_or_else(|| {
            let data = Arc::new(vec![0.0; part.packing.len()]);
            self.copies.push(PackedCopy { part: part.clone(), data, is_current: false });
            self.copies.len() - 1
        });
        let copy = &mut self.copies[at];
        if !copy.is_current {
            // A run drops its copies before the next run starts.
            part.packing.pack(bytemuck::cast_slice(&bytes[part.bytes.clone()]), Arc::get_mut(&mut copy.data)?);
            copy.is_current = true;
        }
        Some(copy.data.clone())
    }
}
