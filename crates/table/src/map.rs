//! The bytes of a file, mapped or copied. All `unsafe` of this crate that touches memory is here; `csv/block.rs` has the rest,
//! one call that works on registers.
#![expect(unsafe_code, reason = "a map is only as sound as the promise that nobody changes the file")]

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use memmap2::Mmap;

use crate::{Error, Table};

impl Table {
    /// Opens the table at `path` without reading its rows: they are borrowed from the system's page cache, and so are shared between
    /// processes and may be far larger than memory.
    ///
    /// # Safety
    /// While the table is open, nobody may change or shorten the file: not this process, not another. Replacing it by renaming another
    /// file over it, as [`TableWriter`](crate::TableWriter) does, is fine: the map keeps the old one. Where that cannot be promised, use
    /// [`Table::open`].
    /// # Errors
    /// As for [`Table::open`].
    /// # Cost
    /// Reads the header. Pages are read from disk when first touched.
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
        // SAFETY: the caller promises what `Bytes::map` asks for.
        Self::open_with(path.as_ref(), |file, _| unsafe { Bytes::map(file) })
    }
}

/// The whole of a file.
#[derive(Debug)]
pub(crate) enum Bytes {
    Mapped(Mmap),
    /// As words, so that every element is aligned.
    Copied {
        words: Vec<u64>,
        n_bytes: usize,
    },
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
        let mut words = vec![0_u64; n_bytes.div_ceil(size_of::<u64>())];
        file.read_exact(&mut bytemuck::cast_slice_mut(&mut words)[..n_bytes])?;
        Ok(Self::Copied { words, n_bytes })
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Copied { words, n_bytes } => &bytemuck::cast_slice(words)[..*n_bytes],
        }
    }
}
