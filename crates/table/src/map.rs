//! The bytes of a file, mapped or copied. All `unsafe` code of this crate that accesses memory is here; the rest is in `csv/block.rs`,
//! one call that operates on registers.
#![expect(unsafe_code, reason = "a map is only sound if no process changes the file")]

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use memmap2::{Mmap, MmapMut};

use crate::error::Error;
use crate::shards::ShardedTable;
use crate::table::Table;
use crate::tensor_names::TensorNames;

impl Table {
    /// Opens the table at `path` without reading its rows. They are borrowed from the system's page cache, so they are shared between processes
    /// and may be far larger than memory.
    ///
    /// # Safety
    /// While the table is open, the file must not be changed or shortened, by this process or any other. Replacing it by renaming another file
    /// over it, as [`TableWriter`](crate::TableWriter) does, is fine: the map keeps the old file. If this cannot be guaranteed, use
    /// [`Table::open`], or [`StreamedTable`](crate::StreamedTable) for a table larger than memory. A disk error under a map is a signal that
    /// terminates the process; the other two return an error.
    /// # Errors
    /// As for [`Table::open`].
    /// # Cost
    /// Reads the header. Pages are read from disk when first accessed. Only [`Table::verify`] checks the rows, by reading all of them.
    /// # Examples
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("xor.safetensors");
    /// use brisk_table::{Schema, Table, TableWriter};
    ///
    /// let mut writer = TableWriter::create(&path, Schema::named(["a", "b"]))?;
    /// writer.push(&[0.0_f32, 1.0, 1.0, 1.0], &[1.0_f32, 0.0])?;
    /// writer.finish()?;
    ///
    /// // SAFETY: the file is this process's own and nothing writes to it.
    /// let table = unsafe { Table::open_mapped(&path) }?;
    /// assert_eq!(table.rows::<f32>(1..2)?, [1.0, 1.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub unsafe fn open_mapped(path: impl AsRef<Path>) -> Result<Self, Error> {
        // SAFETY: the caller guarantees the same.
        unsafe { Self::open_mapped_named(path, &TensorNames::default()) }
    }

    /// Like [`open_mapped`](Self::open_mapped), for a file with other names for its tensors.
    ///
    /// # Safety
    /// As for [`Table::open_mapped`].
    /// # Errors
    /// As for [`Table::open`].
    pub unsafe fn open_mapped_named(path: impl AsRef<Path>, names: &TensorNames) -> Result<Self, Error> {
        // SAFETY: the caller guarantees what `Bytes::map` requires.
        Self::open_with(path.as_ref(), names, |file, _| unsafe { Bytes::map(file) })
    }
}

impl ShardedTable {
    /// Opens the table in a folder, or the table of an index file, without reading its rows.
    ///
    /// # Safety
    /// As for [`Table::open_mapped`], for every shard.
    /// # Errors
    /// As for [`ShardedTable::open`].
    pub unsafe fn open_mapped(path: impl AsRef<Path>) -> Result<Self, Error> {
        // SAFETY: the caller guarantees the same for every shard.
        Self::open_with(path.as_ref(), |shard| unsafe { Table::open_mapped(shard) })
    }
}

/// How the pages of a map will be accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
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
    unsafe fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the caller guarantees that the file does not change, which is all that a read-only map requires.
        Ok(Self::Mapped(unsafe { Mmap::map(file) }?))
    }

    /// Copies the first `n_bytes` of `file`.
    pub(crate) fn read(mut file: &File, n_bytes: u64) -> io::Result<Self> {
        let n_bytes = usize::try_from(n_bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut copy = MmapMut::map_anon(n_bytes)?;
        // Randomly gathered rows miss the TLB as often as the cache; with pages of 2 MiB there are 512 times fewer pages. Some systems do not support them.
        #[cfg(target_os = "linux")]
        let _ = copy.advise(memmap2::Advice::HugePage);
        file.read_exact(&mut copy)?;
        Ok(Self::Copied(copy.make_read_only()?))
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) | Self::Copied(map) => map,
        }
    }

    /// Whether the bytes are in memory and cannot change.
    pub(crate) fn is_copied(&self) -> bool {
        matches!(self, Self::Copied(_))
    }

    /// Tells the system how the bytes will be accessed; does nothing for a copy, or on systems without such hints.
    pub(crate) fn advise(&self, access: Access) -> io::Result<()> {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            map.advise(match access {
                Access::Sequential => memmap2::Advice::Sequential,
                Access::Random => memmap2::Advice::Random,
                Access::WillNeed => memmap2::Advice::WillNeed,
            })?;
        }
        #[cfg(not(unix))]
        let _ = access;
        Ok(())
    }

    /// Hints that some bytes will be read soon.
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
