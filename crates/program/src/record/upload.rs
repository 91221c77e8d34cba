use std::ops::Range;

use brisk_kernels::bytemuck::{self, Pod};

use crate::error::Error;
use crate::record::host_type::check_host_type;
use crate::record::persistent::Persistent;

/// Values for some elements of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct Upload<'a> {
    pub(crate) to: &'a Persistent,
    pub(crate) start: usize,
    pub(crate) bytes: &'a [u8],
    check_type: fn(&Persistent) -> Result<(), Error>,
}

impl<'a> Upload<'a> {
    /// `values` for the elements of `to` from `start` on. The types are those of [`Device::write`](crate::Device::write);
    /// [`Uploads::write`](crate::Uploads::write) checks them.
    pub fn new<T: Pod>(to: &'a Persistent, start: usize, values: &'a [T]) -> Self {
        Self { to, start, bytes: bytemuck::cast_slice(values), check_type: check_host_type::<T> }
    }

    pub(crate) fn range(&self) -> Range<usize> {
        let start = self.start.saturating_mul(self.to.dtype().size_bytes());
        start..start.saturating_add(self.bytes.len())
    }

    /// Checks that the values have the type of the buffer.
    pub(crate) fn check_type(&self) -> Result<(), Error> {
        (self.check_type)(self.to)
    }
}
