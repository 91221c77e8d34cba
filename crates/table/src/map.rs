//! The bytes of a file, mapped or copied. All `unsafe` of this crate that touches memory is here; `csv/block.rs` has the rest,
//! one call that works on registers.
#![expect(unsafe_code, reason = "a map is only as sound as the promise that nobody changes the file")]

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

use memmap2::{Mmap, MmapMut};

use crate::{Error, ShardedTable, Table, TensorNames};

impl Table {
    /// Opens the table at `path` without reading its rows: they are borrowed from the system's page cache, and so are shared between
    /// processes and may be far larger than memory.
    ///
    /// # Safety
    /// While the table is open, nobody may change or shorten the file: not this process, not another. Replacing it by renaming another
    /// file over it, as [`TableWriter`](crate::TableWriter) does, is fine: the map keeps the old one. Where that cannot be promised, use
    /// [`Table::open`], or [`StreamedTable`](crate::StreamedTable) for a table larger than memory. A disk that fails under a map is a
    /// signal that ends the process; the other two make it an error.
    /// # Errors
    /// As for [`Table::open`].
    /// # Cost
    /// Reads the header. Pages are read from disk when first touched. Nothing checks the rows but [`Table::verify`], which reads all of them.
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
        // SAFETY: the caller promises the same.
        unsafe { Self::open_mapped_named(path, &TensorNames::default()) }
    }

    /// The same for a file that has other names for its parts.
    ///
    /// # Safety
    /// As for [`Table::open_mapped`].
    /// # Errors
    /// As for [`Table::open`].
    pub unsafe fn open_mapped_named(path: impl AsRef<Path>, names: &TensorNames) -> Result<Self, Error> {
        // SAFETY: the caller promises what `Bytes::map` asks for.
        Self::open_with(path.as_ref(), names, |file, _| unsafe { Bytes::map(file) })
    }
}

impl ShardedTable {
    /// Opens the table in a folder, or of an index, without reading its rows.
    ///
    /// # Safety
    /// As for [`Table::open_mapped`], for every shard.
    /// # Errors
    /// As for [`ShardedTable::open`].
    pub unsafe fn open_mapped(path: impl AsRef<Path>) -> Result<Self, Error> {
        // SAFETY: the caller promises the same of every shard.
        Self::open_with(path.as_ref(), |shard| unsafe { Table::open_mapped(shard) })
    }
}

/// What will be done with the pages of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Rows are read in order: the system reads far ahead.
    Sequential,
    /// Rows are read here and there: the system reads nothing that was not asked for.
    Random,
    /// All rows are read soon: the system starts reading now.
    WillNeed,
}

/// The whole of a file.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    /// A map of memory, not of a file: so it starts on a page, and the system may be asked for large ones.
    Copied(Mmap),
}

impl Bytes {
    /// # Safety
    /// The file may not be changed or shortened while the map lives.
    unsafe fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the caller promises that the file stays as it is, which is all that a read-only map asks for.
        Ok(Self::Mapped(unsafe { Mmap::map(file) }?))
    }

    /// Copies the first `n_bytes` of `file`.
    pub(crate) fn read(mut file: &File, n_bytes: u64) -> io::Result<Self> {
        let n_bytes = usize::try_from(n_bytes).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut copy = MmapMut::map_anon(n_bytes)?;
        // Rows gathered at random miss the table of pages as often as the cache; pages of 2 MiB are 512 times fewer. Some systems have none.
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

    /// Whether they are in memory, and stay as they are.
    pub(crate) fn is_copied(&self) -> bool {
        matches!(self, Self::Copied(_))
    }

    /// Says how the bytes will be used; nothing to say of a copy, or on systems without such hints.
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

    /// A hint that some bytes will be read soon.
    pub(crate) fn will_need(&self, bytes: Range<usize>) {
        #[cfg(unix)]
        if let Self::Mapped(map) = self {
            // A hint that the system does not take is no error.
            let _ = map.advise_range(memmap2::Advice::WillNeed, bytes.start, bytes.len());
        }
        #[cfg(not(unix))]
        let _ = bytes;
    }
}
