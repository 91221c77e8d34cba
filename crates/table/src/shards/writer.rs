use std::path::{Path, PathBuf};

use super::target::Target;
use crate::dictionary::Dictionary;
use crate::dtype::Element;
use crate::error::Error;
use crate::format::{ShardEntry, ShardIndex, TableMetadata};
use crate::parts::Opened;
#[cfg(feature = "remote")]
use crate::remote::{Location, Place, Remote};
use crate::schema::{Schema, Weights};
use crate::statistics::Moments;
use crate::writer::{Parts, RowBatch, TableWriter, Written};

/// The size of shards. The last one may be smaller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShardSize {
    /// This number of rows.
    Rows(usize),
    /// As many rows as fit in this number of bytes of data, but at least one.
    Bytes(u64),
}

/// Writes a table as a folder of shards, which are files of bounded size that are also tables, and an index.
///
/// The index is written last and renamed into its place, so that a reader sees either all of the old table or all of the new one.
/// Shards have new names; those of the old table are removed once the new index is in place, and readers that have them open can
/// still read them. If the writer is dropped without [`finish`](Self::finish), or on any error, it removes what it wrote. Files
/// left by a killed process are removed by the next writer in that folder. Several writers may use one folder: the last to finish
/// wins.
///
/// # Examples
/// ```
/// # let parent = tempfile::tempdir()?;
/// # let folder = parent.path().join("ramp");
/// use brisk_table::{Schema, ShardSize, ShardedTable, ShardedWriter};
///
/// let mut writer = ShardedWriter::create(&folder, Schema::named(["x", "x²"]), ShardSize::Rows(400))?;
/// for i in 0..1000 {
///     let x = i as f32;
///     writer.push(&[x, x * x], &[(i % 2) as f32])?;
/// }
/// assert_eq!(writer.finish()?, 1000);
///
/// let table = ShardedTable::open(&folder)?;
/// assert_eq!((table.n_rows(), table.n_shards()), (1000, 3));
/// assert_eq!(table.rows::<f32>(400..401)?, [400.0, 160_000.0]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ShardedWriter {
    // Dropped in this order: the current shard, then the other shards with their index.
    shard: TableWriter,
    shard_path: PathBuf,
    target: Target,
    schema: Schema,
    shard_rows: usize,
    /// What every shard stores, its dictionaries and classes among it.
    metadata: TableMetadata,
    entries: Vec<ShardEntry>,
    n_rows: usize,
}

impl ShardedWriter {
    /// Starts a table in `folder`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`Error::Schema`] for an invalid schema, or shards of no rows; [`Error::Write`] if no file can be created in that folder.
    pub fn create(folder: impl AsRef<Path>, schema: Schema, size: ShardSize) -> Result<Self, Error> {
        Self::create_with(folder.as_ref(), schema, TableMetadata::default(), size)
    }

    /// Starts a table in the folder at a URL: of a store (`s3:`, `gs:` or `az:`, each with its feature), or of this machine
    /// (`file:`).
    ///
    /// A shard is written to the folder [`RemoteOptions::staging`](crate::RemoteOptions::staging) first, and sent in parts when
    /// it is full. The index is sent last, so that a reader sees either all of the old table or all of the new one. Then the
    /// shards of the old table are removed, and readers that have them open get an error. What killed writers have sent is
    /// removed at the start, as far as it is known that they are gone.
    ///
    /// # Errors
    /// [`Error::Remote`] if the store cannot be used, or can only be read; otherwise as for [`create`](Self::create).
    #[cfg(feature = "remote")]
    pub fn create_url(url: &str, schema: Schema, size: ShardSize, remote: &Remote) -> Result<Self, Error> {
        match Place::of(url)? {
            Place::File(folder) => Self::create(folder, schema, size),
            Place::Server(location) => Self::create_at(&location, schema, TableMetadata::default(), size, remote),
        }
    }

    /// The same as [`create`](Self::create), with more that every shard stores.
    pub(crate) fn create_with(folder: &Path, schema: Schema, metadata: TableMetadata, size: ShardSize) -> Result<Self, Error> {
        Self::start(|| Target::folder(folder), schema, metadata, size)
    }

    /// The same in a folder of a store.
    #[cfg(feature = "remote")]
    pub(crate) fn create_at(
        location: &Location,
        schema: Schema,
        metadata: TableMetadata,
        size: ShardSize,
        remote: &Remote,
    ) -> Result<Self, Error> {
        Self::start(|| Target::at(location, remote), schema, metadata, size)
    }

    /// Starts a table whose shards all store `metadata`.
    fn start(
        target: impl FnOnce() -> Result<Target, Error>,
        schema: Schema,
        metadata: TableMetadata,
        size: ShardSize,
    ) -> Result<Self, Error> {
        schema.check()?;
        let shard_rows = rows_in(size, &schema)?;
        let mut target = target()?;
        let shard_path = target.next_shard();
        let shard = TableWriter::create_shard(&shard_path, schema.clone(), metadata.clone())?;
        Ok(Self { shard, shard_path, target, schema, shard_rows, metadata, entries: Vec::new(), n_rows: 0 })
    }

    /// Appends rows; large slices and single rows are both fine.
    ///
    /// # Shapes
    /// `features`: `[n, n_cols]`, `labels`: `[n, n_labels]`, row-major.
    /// # Errors
    /// As for [`TableWriter::push`].
    pub fn push<F: Element, L: Element>(&mut self, features: &[F], labels: &[L]) -> Result<(), Error> {
        if self.schema.weights == Weights::Present || !self.schema.categories.is_empty() {
            // Its error describes what is missing.
            return self.shard.push(features, labels);
        }
        self.push_batch(RowBatch { features, labels, ..RowBatch::default() })
    }

    /// Like [`push`](Self::push), for a table whose schema has [`Weights::Present`]; `weights`: `[n]`.
    ///
    /// # Errors
    /// As for [`TableWriter::push`].
    pub fn push_weighted<F: Element, L: Element>(&mut self, features: &[F], labels: &[L], weights: &[f32]) -> Result<(), Error> {
        if !self.schema.categories.is_empty() {
            return self.shard.push_weighted(features, labels, weights);
        }
        self.push_batch(RowBatch { features, labels, weights, ..RowBatch::default() })
    }

    /// Like [`push`](Self::push), for rows with any parts.
    ///
    /// # Errors
    /// As for [`TableWriter::push`].
    pub fn push_batch<F: Element, L: Element>(&mut self, rows: RowBatch<'_, F, L>) -> Result<(), Error> {
        self.shard.check(&rows)?;
        let parts = Parts {
            features: bytemuck::cast_slice(rows.features),
            categories: rows.categories,
            labels: bytemuck::cast_slice(rows.labels),
            weights: rows.weights,
        };
        self.push_stored(&parts, None)
    }

    /// Appends rows whose parts match the schema and are aligned for their types. `moments` are theirs, if they are known.
    pub(crate) fn push_stored(&mut self, rows: &Parts<'_>, moments: Option<&Moments>) -> Result<(), Error> {
        let n_rows = rows.n_rows(&self.schema);
        let mut start = 0;
        while start < n_rows {
            let end = n_rows.min(start + self.room()?);
            let moments = moments.filter(|_| end - start == n_rows);
            self.shard.push_stored(rows.slice(&(start..end), n_rows), moments)?;
            self.n_rows += end - start;
            start = end;
        }
        Ok(())
    }

    /// How many rows the shard still has room for, at least one; starts the next one if it is full.
    fn room(&mut self) -> Result<usize, Error> {
        if self.shard.n_rows() == self.shard_rows {
            self.next_shard()?;
        }
        Ok(self.shard_rows - self.shard.n_rows())
    }

    /// Sets the dictionaries of the categorical columns, one for each in the order of the schema. Every shard stores them, so
    /// they must be set before the first shard is full.
    ///
    /// # Errors
    /// [`Error::Schema`] if they are not the dictionaries of those columns, or if a shard is already full.
    pub fn set_dictionaries(&mut self, dictionaries: Vec<Dictionary>) -> Result<(), Error> {
        self.check_unchanged("dictionaries", dictionaries == self.metadata.dictionaries)?;
        self.shard.set_dictionaries(dictionaries.clone())?;
        self.metadata.dictionaries = dictionaries;
        Ok(())
    }

    /// Sets the names of the classes, if labels are class numbers counted from 0. Every shard stores the names, so they must be
    /// set before the first shard is full.
    ///
    /// # Errors
    /// [`Error::Schema`] if a class is named twice, or if a shard is already full.
    pub fn set_classes<S: Into<String>>(&mut self, names: impl IntoIterator<Item = S>) -> Result<(), Error> {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        self.check_unchanged("classes", names == self.metadata.classes)?;
        self.shard.set_classes(names.iter().cloned())?;
        self.metadata.classes = names;
        Ok(())
    }

    fn check_unchanged(&self, what: &str, is_same: bool) -> Result<(), Error> {
        let problem = || format!("{what} may not change once a shard is full; set them before, or make shards larger");
        if self.entries.is_empty() || is_same { Ok(()) } else { Err(Error::Schema { problem: problem() }) }
    }

    /// The number of rows that were pushed.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Completes the last shard, puts the index in its place and removes the shards of the table that was there before. Returns
    /// the number of rows.
    ///
    /// # Errors
    /// As for [`TableWriter::finish`]; an old table in the folder is then unchanged.
    pub fn finish(self) -> Result<usize, Error> {
        self.complete().map(|written| written.n_rows)
    }

    /// Like [`finish`](Self::finish), with the size of all shards.
    pub(crate) fn complete(mut self) -> Result<Written, Error> {
        self.entries.push(finished(self.shard, &self.shard_path)?);
        self.target.keep(&self.shard_path)?;
        let n_bytes = self.entries.iter().map(|entry| entry.n_bytes).sum();
        self.target.publish(&ShardIndex { shards: self.entries })?;
        Ok(Written { n_rows: self.n_rows, n_bytes })
    }

    fn next_shard(&mut self) -> Result<(), Error> {
        let next_path = self.target.next_shard();
        let next = TableWriter::create_shard(&next_path, self.schema.clone(), self.metadata.clone())?;
        let full = std::mem::replace(&mut self.shard, next);
        let full_path = std::mem::replace(&mut self.shard_path, next_path);
        self.entries.push(finished(full, &full_path)?);
        self.target.keep(&full_path)
    }
}

fn finished(shard: TableWriter, path: &Path) -> Result<ShardEntry, Error> {
    let n_rows = shard.finish()? as u64;
    let written = Opened::at(path)?;
    let file_name = path.file_name().expect("shards are named by their folder").to_string_lossy().into_owned();
    Ok(ShardEntry { file_name, n_rows, n_bytes: written.n_bytes, header_crc32: written.parts.header_crc32 })
}

fn rows_in(size: ShardSize, schema: &Schema) -> Result<usize, Error> {
    let rows = match size {
        ShardSize::Rows(rows) => rows,
        ShardSize::Bytes(bytes) => {
            let weight = if schema.weights == Weights::Present { 4 } else { 0 };
            let labels = schema.n_labels * schema.label_dtype.n_bytes();
            let row = schema.n_cols() * schema.dtype.n_bytes() + labels + 4 * schema.categories.len() + weight;
            usize::try_from(bytes).unwrap_or(usize::MAX) / row
        }
    };
    match (size, rows) {
        (ShardSize::Rows(0) | ShardSize::Bytes(0), _) => {
            Err(Error::Schema { problem: format!("shards of {size:?}, expected at least one") })
        }
        _ => Ok(rows.max(1)),
    }
}
