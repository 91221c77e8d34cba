use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use brisk_kernels::DType;

/// A buffer that outlives a run: weights, optimizer state, a table, a counter.
///
/// It is only a name, a type and a length; a [`Device`](crate::Device) allocates zeroed memory for it when it is first written,
/// read or compiled on that device, and each device has its own copy. Buffers that must be written before training starts are
/// [`required`](Self::required). Programs that bind the same `Persistent` share its memory, so that one can evaluate what another
/// trains. Clones are the same buffer.
///
/// A device frees the memory at its next allocation after the last clone has been dropped (programs keep one), and not before the
/// last [`Executable`](crate::Executable) that uses it has been dropped.
///
/// # Examples
/// ```
/// use brisk_program::{Device, Persistent, kernels::DType};
///
/// let weights = Persistent::new("weights", DType::F32, 3);
/// let device = Device::cpu()?;
/// device.write(&weights, &[1.0_f32, 2.0, 3.0])?;
/// device.write_at(&weights, 1, &[5.0_f32])?;
/// assert_eq!(device.read::<f32>(&weights)?, [1.0, 5.0, 3.0]);
/// # Ok::<(), brisk_program::Error>(())
/// ```
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
    is_required: bool,
    last_write: LastWrite,
}

/// The [`Device`](crate::Device) that has last written to a buffer, and the number of writes on all devices. Its type is erased:
/// a device has buffers, whose auto traits would be those of the device, and so on, beyond the compiler's limit.
#[derive(Default)]
struct LastWrite(Mutex<Option<Writer>>);

pub(crate) type Writer = (Box<dyn Any + Send + Sync>, u64);

impl fmt::Debug for LastWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LastWrite").finish_non_exhaustive()
    }
}

/// A device's reference to a buffer that it has allocated: tells whether any other handle of it exists.
#[derive(Debug)]
pub(crate) struct WeakPersistent(Weak<Inner>);

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

/// A device allocates whole words, the unit in which a GPU copies.
const WORD_BYTES: usize = 4;

impl Persistent {
    /// A buffer of `len` elements of `dtype`. The name is for errors and profiles; it need not be unique.
    pub fn new(name: impl Into<String>, dtype: DType, len: usize) -> Self {
        Self::make(name.into(), dtype, len, false)
    }

    /// A buffer whose values come from outside, such as parameters: on each device, running a program that reads it before any of
    /// its elements have been written returns [`Error::Unwritten`](crate::Error::Unwritten).
    pub fn required(name: impl Into<String>, dtype: DType, len: usize) -> Self {
        Self::make(name.into(), dtype, len, true)
    }

    fn make(name: String, dtype: DType, len: usize, is_required: bool) -> Self {
        let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
        Self { inner: Arc::new(Inner { id, name, dtype, len, is_required, last_write: LastWrite::default() }) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.inner.dtype
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.inner.len
    }

    /// Whether it has no elements. Such a buffer gets no memory: writing, reading and compiling it is an error.
    pub fn is_empty(&self) -> bool {
        self.inner.len == 0
    }

    /// The number of bytes.
    pub fn len_bytes(&self) -> usize {
        self.inner.len.saturating_mul(self.inner.dtype.size_bytes())
    }

    /// Whether its values must be written before a program reads them.
    pub fn is_required(&self) -> bool {
        self.inner.is_required
    }

    /// Whether both are handles of one buffer.
    pub fn is_same(&self, other: &Self) -> bool {
        self.inner.id == other.inner.id
    }

    /// The device that has last written to it, with its type erased, and the number of writes on all devices.
    pub(crate) fn last_writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.inner.last_write.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that a device allocates for it.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.len_bytes().checked_next_multiple_of(WORD_BYTES).unwrap_or(usize::MAX)
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    pub(crate) fn downgrade(&self) -> WeakPersistent {
        WeakPersistent(Arc::downgrade(&self.inner))
    }
}

impl WeakPersistent {
    pub(crate) fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}
