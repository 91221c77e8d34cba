//! Tables whose rows stay in the page cache.
#![expect(unsafe_code, reason = "a map is only sound if no process changes the file")]

use std::path::Path;

use crate::error::Error;
use crate::map::Bytes;
use crate::shards::ShardedTable;
use crate::table::Table;
use crate::tensor_names::TensorNames;

impl Table {
    /// Opens the table at `path` without reading its rows. They are borrowed from the system's page cache, so they are shared
    /// between processes and may be far larger than memory.
    ///
    /// # Safety
    /// While the table is open, the file must not be changed or shortened, by this process or any other. Replacing it by renaming
    /// another file over it, as [`TableWriter`](crate::TableWriter) does, is fine: the map keeps the old file. If this cannot be
    /// guaranteed, use [`Table::open`], or [`StreamedTable`](crate::StreamedTable) for a table larger than memory. A disk error
    /// under a map is a signal that terminates the process; the other two return an error.
    /// # Errors
    /// As for [`Table::open`].
    /// # Cost
    /// Reads the header. Pages are read from disk when first accessed. Only [`Table::verify`] checks the rows, by reading all of
    /// them.
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
