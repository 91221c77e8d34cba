use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brisk_kernels::DType;

/// A buffer that outlives a run: weights, optimizer state, a table, a counter.
///
/// It is only a name, a type and a length; a [`Device`](crate::Device) gives it memory, zeroed, when it is first written or
/// compiled there. Programs that bind the same `Persistent` share its memory, so what one trains the other evaluates.
/// Clones are the same buffer. The device frees the memory when the last clone is gone.
#[derive(Debug, Clone)]
pub struct Persistent {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    id: u64,
    name: String,
    dtype: DType,
    len: usize,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Persistent {
    /// A buffer of `len` elements of `dtype`. The name is for errors and profiles; it need not be unique.
    pub fn new(name: impl Into<String>, dtype: DType, len: usize) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { inner: Arc::new(Inner { id, name: name.into(), dtype, len }) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.inner.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.inner.len == 0
    }

    /// Bytes.
    pub fn len_bytes(&self) -> usize {
        self.inner.len * self.inner.dtype.size_bytes()
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    /// Whether no clone but those that a device itself keeps is left.
    pub(crate) fn is_last(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }
}
