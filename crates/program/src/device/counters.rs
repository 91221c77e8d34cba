use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// How often the host has read, written and allocated memory of a device since the device was opened
/// ([`Device::counters`](crate::Device::counters)). The difference of two values counts what happened in between: replays read
/// nothing, write nothing and allocate nothing.
///
/// The buffers of [host steps](crate::HostStep) are not counted, nor is staging memory, through which values are copied.
///
/// # Examples
/// ```
/// use brisk_program::{Device, Persistent, Program, kernels::{DType, Map}};
///
/// let device = Device::cpu()?;
/// let (x, y) = (Persistent::new("x", DType::F32, 4), Persistent::new("y", DType::F32, 4));
/// device.write(&x, &[1.0_f32, -2.0, 3.0, -4.0])?;
/// let mut program = Program::new("relu");
/// let [from, to] = [&x, &y].map(|buffer| program.persistent(buffer));
/// program.push(Map::unary(4, |x| x.relu()), &[from, to])?;
/// let executable = device.compile(&program)?;
///
/// let before = device.counters();
/// executable.run(1000)?;
/// assert_eq!(device.counters() - before, Default::default());
/// device.read::<f32>(&y)?;
/// assert_eq!((device.counters() - before).read_bytes, 16);
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Reads of persistent buffers. On a GPU, each waits for all replays so far.
    pub n_reads: u64,
    /// The bytes of these reads.
    pub read_bytes: u64,
    /// Writes to persistent buffers.
    pub n_writes: u64,
    /// The bytes of these writes.
    pub written_bytes: u64,
    /// Buffers allocated, persistent ones and those of compiled programs.
    pub n_allocations: u64,
}

impl Sub for Counters {
    type Output = Self;

    /// What has happened since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            n_reads: self.n_reads.saturating_sub(earlier.n_reads),
            read_bytes: self.read_bytes.saturating_sub(earlier.read_bytes),
            n_writes: self.n_writes.saturating_sub(earlier.n_writes),
            written_bytes: self.written_bytes.saturating_sub(earlier.written_bytes),
            n_allocations: self.n_allocations.saturating_sub(earlier.n_allocations),
        }
    }
}

/// Reads or writes, and their bytes.
#[derive(Debug, Default)]
pub(crate) struct Transfers {
    n: AtomicU64,
    n_bytes: AtomicU64,
}

impl Transfers {
    pub(crate) fn add(&self, n_bytes: usize) {
        self.n.fetch_add(1, Ordering::Relaxed);
        self.n_bytes.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    /// How many there were, and their bytes.
    pub(crate) fn count(&self) -> [u64; 2] {
        [&self.n, &self.n_bytes].map(|count| count.load(Ordering::Relaxed))
    }
}
