//! The bytes of a file, mapped or copied. All `unsafe` code of this crate that accesses memory is here; the rest is in
//! `csv/block.rs`, one call that operates on registers.
#![expect(unsafe_code, reason = "a map is only sound if no process changes the file")]

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

use memmap2::{Mmap, MmapMut};

/// How the pages of a map will be accessed: the advice of `madvise`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// Rows are read in order: the system reads far ahead.
    Sequential,
    /// Rows are read in random order: the system reads only the pages that are accessed.
    Random,
    /// All rows are read soon: the system starts reading now.
    WillNeed,
}

/// The contents of a file.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    /// An anonymous map, which is page-aligned and can use large pages.
    Copied(Mmap),
}

impl Bytes {
    /// # Safety
    /// The file may not be changed or shortened while the map lives.
    pub(crate) unsafe fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the caller guarantees that the file does not change, which is all that a read-only map requires.
        Ok(Self::Mapped(unsafe { Mmap::map(file) }?))
    }

    /// Copies the first `n_bytes` of `file`.
    pub(crate) fn read(mut file: &File, n_bytes: u64) -> io::Result<Self> {
        Self::filled(n_bytes, |copy| file.read_exact(copy))
    }

    /// Memory of `n_bytes` that `fill` has filled.
    pub(crate) fn filled<E: From<io::Error>>(n_bytes: u64, fill: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let n_bytes = usize::try_from(n_bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut copy = MmapMut::map_anon(n_bytes)?;
        // Randomly gathered rows miss the TLB as often as the cache; with pages of 2 MiB there are 512 times fewer pages. Some
        // systems do not support them.
        #[cfg(target_os = "linux")]
        let _ = copy.advise(memmap2::Advice::HugePage);
        fill(&mut copy)?;
        Ok(Self::Copied(copy.make_read_only()?))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) | Self::Copied(map) => map,
        }
    }

    /// Tells the system how the bytes will be accessed; does nothing for a copy, or on systems without such hints.
    pub(crate) fn advise(&self, advice: Advice) -> io::Result<()> {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            map.advise(match advice {
                Advice::Sequential => memmap2::Advice::Sequential,
                Advice::Random => memmap2::Advice::Random,
                Advice::WillNeed => memmap2::Advice::WillNeed,
            })?;
        }
        #[cfg(not(unix))]
        let _ = advice;
        Ok(())
    }

    pub(crate) fn will_need(&self, bytes: Range<usize>) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            // It is not an error if the system ignores the hint.
            let _ = map.advise_range(memmap2::Advice::WillNeed, bytes.start, bytes.len());
        }
        #[cfg(not(unix))]
        let _ = bytes;
    }
}
