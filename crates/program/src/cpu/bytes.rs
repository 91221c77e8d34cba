use std::ops::{Deref, DerefMut};

/// Zeroed bytes that start on a cache line, of a length that never changes.
#[derive(Debug, Default)]
pub(crate) struct Bytes {
    storage: Vec<u8>,
    start: usize,
    len: usize,
}

const LINE_BYTES: usize = 64;

impl Bytes {
    /// `len` zero bytes; `None` if there is no room for them.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let room = len.checked_add(LINE_BYTES)?;
        // `try_reserve` tells of a lack of room without ending the process; the zeros come from fresh pages.
        Vec::<u8>::new().try_reserve_exact(room).ok()?;
        let storage = vec![0; room];
        let start = storage.as_ptr().align_offset(LINE_BYTES);
        Some(Self { storage, start, len })
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.storage[self.start..self.start + self.len]
    }
}

impl DerefMut for Bytes {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.storage[self.start..self.start + self.len]
    }
}
