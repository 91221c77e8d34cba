//! Tables that are copied into shards.

use std::ops::Range;
use std::path::Path;

use super::target::Target;
use super::writer::{ShardSize, ShardedWriter};
use crate::error::Error;
use crate::format::TableMetadata;
use crate::parts::Part;
#[cfg(feature = "remote")]
use crate::remote::Remote;
use crate::row_store::RowStore;
use crate::schema::Schema;
use crate::writer::Parts;

/// About how many bytes are copied at a time.
const COPY_BYTES: usize = 4 << 20;

impl ShardedWriter {
    /// Copies a table of any kind to a folder of shards, as [`create`](Self::create) and [`finish`](Self::finish) write it: the
    /// rows in their order, the names, dictionaries and classes, and what its import has recorded. Returns the number of rows.
    ///
    /// # Errors
    /// As for [`create`](Self::create) and [`finish`](Self::finish); [`Error::NotGathered`] for features of a type that is not an
    /// [`Element`](crate::Element); those of reading the table. An old table in the folder is then unchanged.
    /// # Examples
    /// ```
    /// # let parent = tempfile::tempdir()?;
    /// # let (path, folder) = (parent.path().join("ramp.safetensors"), parent.path().join("ramp"));
    /// use brisk_table::{ReadAhead, Schema, ShardSize, ShardedTable, ShardedWriter, StreamedTable, TableWriter};
    ///
    /// let mut writer = TableWriter::create(&path, Schema::named(["x"]))?;
    /// writer.push(&[0.5_f32, 1.5, 2.5], &[0.0_f32, 1.0, 0.0])?;
    /// writer.finish()?;
    ///
    /// // Streamed, so that the table may be larger than memory.
    /// let table = StreamedTable::open(&path, &ReadAhead::new(0))?;
    /// ShardedWriter::copy(&table, &folder, ShardSize::Rows(2))?;
    /// let shards = ShardedTable::open(&folder)?;
    /// assert_eq!((shards.n_rows(), shards.n_shards()), (3, 2));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn copy<S: RowStore>(table: &S, folder: impl AsRef<Path>, size: ShardSize) -> Result<usize, Error> {
        Self::copy_to(table, size, || Target::folder(folder.as_ref()))
    }

    /// The same to the folder at a URL, as [`create_url`](Self::create_url) writes it.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy) and [`create_url`](Self::create_url).
    #[cfg(feature = "remote")]
    pub fn copy_url<S: RowStore>(table: &S, url: &str, size: ShardSize, remote: &Remote) -> Result<usize, Error> {
        Self::copy_to(table, size, || Target::at_url(url, remote))
    }

    fn copy_to<S: RowStore>(table: &S, size: ShardSize, target: impl FnOnce() -> Result<Target, Error>) -> Result<usize, Error> {
        let (schema, metadata) = described(table);
        let row_bytes = Part::ALL.into_iter().filter_map(|part| Some(table.parts().row_bytes(table.parts().tensor(part)?)));
        let rows_at_once = (COPY_BYTES / row_bytes.sum::<usize>().max(1)).max(1);
        let mut writer = Self::start(target, schema, metadata, size)?;
        let mut start = 0;
        while start < table.n_rows() {
            let end = table.n_rows().min(start + rows_at_once.min(writer.room()?));
            let [features, labels, categories, weights] = Part::ALL.map(|part| stored(table, part, start..end));
            let (features, labels, categories, weights) = (features?, labels?, categories?, weights?);
            writer.push_stored(
                end - start,
                Parts {
                    features: &bytemuck::cast_slice(&features.0)[..features.1],
                    labels: &bytemuck::cast_slice(&labels.0)[..labels.1],
                    categories: &bytemuck::cast_slice(&categories.0)[..categories.1 / size_of::<u32>()],
                    weights: &bytemuck::cast_slice(&weights.0)[..weights.1 / size_of::<f32>()],
                },
            )?;
            start = end;
        }
        writer.finish()
    }
}

/// The bytes of a part of some rows, aligned for any type, and their number; none if the table does not have the part.
fn stored<S: RowStore>(table: &S, part: Part, rows: Range<usize>) -> Result<(Vec<u64>, usize), Error> {
    let Some(tensor) = table.parts().tensor(part) else { return Ok((Vec::new(), 0)) };
    let row_bytes = table.parts().row_bytes(tensor);
    let n_bytes = rows.len() * row_bytes;
    let mut words = vec![0_u64; n_bytes.div_ceil(size_of::<u64>())];
    let out: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    table.each_run(part, rows, |row, bytes| out[row * row_bytes..][..bytes.len()].copy_from_slice(bytes))?;
    Ok((words, n_bytes))
}

/// The schema of a table, and the rest of what it records.
fn described<S: RowStore>(table: &S) -> (Schema, TableMetadata) {
    let parts = table.parts();
    let metadata = parts.metadata.clone();
    let categories = match &metadata.dictionaries[..] {
        [] => (0..parts.n_categories()).map(|col| format!("category {col}")).collect(),
        dictionaries => dictionaries.iter().map(|dictionary| dictionary.name().to_owned()).collect(),
    };
    let schema = Schema {
        dtype: parts.features.dtype,
        label_dtype: parts.label_dtype(),
        n_labels: parts.n_labels(),
        categories,
        weights: parts.row_weights(),
        column_names: metadata.column_names.clone(),
        label_names: metadata.label_names.clone(),
        source: metadata.source.clone(),
        ..Schema::shaped(&parts.features.shape[1..])
    };
    (schema, metadata)
}
