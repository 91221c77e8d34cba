//! Where tables are written: to a file, or a folder of shards, at a path or a URL.

use std::ops::Range;
use std::path::{Path, PathBuf};

use brisk_atomic_file::is_same_file;

use crate::error::Error;
use crate::format::TableMetadata;
use crate::parts::Part;
#[cfg(feature = "remote")]
use crate::remote::{Location, Place, Remote, put_file};
use crate::row_store::RowStore;
use crate::schema::Schema;
#[cfg(feature = "remote")]
use crate::shards::IndexToBe;
use crate::shards::{ShardSize, ShardedWriter};
use crate::statistics::Moments;
use crate::writer::{Parts, TableWriter, Written};

/// About how many bytes are copied at a time.
const COPY_BYTES: usize = 4 << 20;

/// Where a table is written.
///
/// # Examples
/// ```
/// use brisk_table::{Destination, ShardSize};
///
/// let file = Destination::path("higgs.safetensors");
/// let folder = Destination::path("higgs").in_shards(ShardSize::Rows(1_000_000));
/// assert_ne!(format!("{file:?}"), format!("{folder:?}"));
/// ```
#[derive(Clone, Debug)]
pub struct Destination {
    place: Target,
    shards: Option<ShardSize>,
}

#[derive(Clone, Debug)]
enum Target {
    Path(PathBuf),
    #[cfg(feature = "remote")]
    Object(Location, Remote),
}

impl Destination {
    /// A file at a path, which a complete table replaces. Paths convert into this.
    pub fn path(path: impl Into<PathBuf>) -> Self {
        Self { place: Target::Path(path.into()), shards: None }
    }

    /// An object of a store, or a file of this machine by its `file:` URL.
    ///
    /// The header of a table is written last, so that the whole table is written to a file in
    /// [`RemoteOptions::staging`](crate::RemoteOptions::staging) first, and sent in parts when it is complete. Of
    /// [shards](Self::in_shards) only one at a time is there.
    ///
    /// # Errors
    /// [`Error::Remote`] if the URL is not valid, or its store can only be read or needs settings that are missing;
    /// [`Error::FeatureOff`] for a store whose feature is not enabled.
    #[cfg(feature = "remote")]
    pub fn url(url: &str, remote: &Remote) -> Result<Self, Error> {
        let place = match Place::of(url)? {
            Place::File(path) => Target::Path(path),
            Place::Server(location) => {
                remote.check_writable(&location)?;
                Target::Object(location, remote.clone())
            }
        };
        Ok(Self { place, shards: None })
    }

    /// A folder of shards with an index, as [`ShardedWriter`] writes it, instead of one file.
    pub fn in_shards(self, size: ShardSize) -> Self {
        Self { shards: Some(size), ..self }
    }

    /// Whether all that a table records must be known before its first row.
    #[cfg(feature = "import")]
    pub(crate) fn is_sharded(&self) -> bool {
        self.shards.is_some()
    }

    /// The file at a path that is replaced.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.place {
            Target::Path(path) if self.shards.is_none() => Some(path),
            _ => None,
        }
    }

    /// A path on the disk on which the table is written first.
    #[cfg(feature = "npy")]
    pub(crate) fn beside(&self) -> Result<PathBuf, Error> {
        let folder = match &self.place {
            Target::Path(path) if !path.is_dir() => return Ok(path.clone()),
            Target::Path(folder) => folder.clone(),
            #[cfg(feature = "remote")]
            Target::Object(_, remote) => remote.staging()?,
        };
        Ok(folder.join("table"))
    }

    /// The path or URL, for errors.
    #[cfg(feature = "import")]
    pub(crate) fn shown(&self) -> PathBuf {
        match &self.place {
            Target::Path(path) => path.clone(),
            #[cfg(feature = "remote")]
            Target::Object(location, _) => location.path(),
        }
    }

    /// Starts a table that records `metadata`.
    pub(crate) fn open(&self, schema: Schema, metadata: TableMetadata) -> Result<Output, Error> {
        let file = |writer, staged| Output::File(Box::new(writer), staged);
        let shards = |writer| Output::Shards(Box::new(writer));
        match (&self.place, self.shards) {
            (Target::Path(path), None) => Ok(file(TableWriter::create_with(path, schema, metadata)?, None)),
            (Target::Path(folder), Some(size)) => ShardedWriter::create_with(folder, schema, metadata, size).map(shards),
            #[cfg(feature = "remote")]
            (Target::Object(location, remote), None) => {
                let mut staging = IndexToBe::create_staging(&remote.staging()?)?;
                let path = staging.next_shard();
                let staged = Staged { path, location: location.clone(), remote: remote.clone(), _folder: staging };
                Ok(file(TableWriter::create_shard(&staged.path, schema, metadata)?, Some(staged)))
            }
            #[cfg(feature = "remote")]
            (Target::Object(location, remote), Some(size)) => {
                ShardedWriter::create_at(location, schema, metadata, size, remote).map(shards)
            }
        }
    }
}

/// A table that is being written.
#[derive(Debug)]
pub(crate) enum Output {
    /// One file, which is sent if it is staged. Dropped in this order.
    File(Box<TableWriter>, Option<Staged>),
    Shards(Box<ShardedWriter>),
}

/// The file of a table until it has been sent. It is removed with this value, and if the process is killed, by the next one that
/// uses the staging folder.
#[cfg(feature = "remote")]
#[derive(Debug)]
pub(crate) struct Staged {
    path: PathBuf,
    location: Location,
    remote: Remote,
    _folder: IndexToBe,
}

/// Tables at paths are written in place.
#[cfg(not(feature = "remote"))]
#[derive(Debug)]
pub(crate) enum Staged {}

impl Staged {
    #[cfg(feature = "remote")]
    fn send(self) -> Result<(), Error> {
        put_file(&self.location, &self.remote, &self.path)
    }

    #[cfg(not(feature = "remote"))]
    fn send(self) -> Result<(), Error> {
        match self {}
    }
}

impl Output {
    /// Appends rows whose parts match the schema and are aligned for their types. `moments` are theirs, if they are known.
    pub(crate) fn push(&mut self, rows: Parts<'_>, moments: Option<&Moments>) -> Result<(), Error> {
        match self {
            Self::File(writer, _) => writer.push_stored(rows, moments),
            Self::Shards(writer) => writer.push_stored(&rows, moments),
        }
    }

    #[cfg(feature = "import")]
    pub(crate) fn n_rows(&self) -> usize {
        match self {
            Self::File(writer, _) => writer.n_rows(),
            Self::Shards(writer) => writer.n_rows(),
        }
    }

    pub(crate) fn finish(self) -> Result<Written, Error> {
        match self {
            Self::File(writer, staged) => {
                let written = writer.complete()?;
                staged.map_or(Ok(()), Staged::send)?;
                Ok(written)
            }
            Self::Shards(writer) => writer.complete(),
        }
    }
}

impl<P: AsRef<Path>> From<P> for Destination {
    fn from(path: P) -> Self {
        Self::path(path.as_ref())
    }
}

impl From<&Self> for Destination {
    fn from(dest: &Self) -> Self {
        dest.clone()
    }
}

/// The progress of an import, or of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// The number of bytes of the source that have been read, before decompression. A source that is read twice counts twice.
    pub bytes_read: u64,
    /// The length of the source in bytes; twice that if it is read twice.
    pub total_bytes: u64,
    /// The number of rows that have been written, or read for the first time if they are read twice.
    pub n_rows: usize,
}

/// Copies a table of any kind to a file or a folder of shards: the rows in their order, the names, dictionaries and classes, and
/// what its import has recorded. `progress` is called on this thread, about once for 4 MiB.
///
/// # Errors
/// [`Error::NotGathered`] for features of a type that is not an [`Element`](crate::Element); [`Error::SameFile`] if the table is
/// the file to be written; those of reading the table, and of [`TableWriter`] and [`ShardedWriter`]. An old table is then
/// unchanged.
/// # Examples
/// ```
/// # let parent = tempfile::tempdir()?;
/// # let (path, folder) = (parent.path().join("ramp.safetensors"), parent.path().join("ramp"));
/// use brisk_table::{Destination, ReadAhead, Schema, ShardSize, ShardedTable, StreamedTable, TableWriter, copy_table};
///
/// let mut writer = TableWriter::create(&path, Schema::named(["x"]))?;
/// writer.push(&[0.5_f32, 1.5, 2.5], &[0.0_f32, 1.0, 0.0])?;
/// writer.finish()?;
///
/// // Streamed, so that the table may be larger than memory.
/// let table = StreamedTable::open(&path, &ReadAhead::new(64 << 20))?;
/// copy_table(&table, Destination::path(&folder).in_shards(ShardSize::Rows(2)), |_| ())?;
/// let shards = ShardedTable::open(&folder)?;
/// assert_eq!((shards.n_rows(), shards.n_shards()), (3, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn copy_table<S: RowStore>(
    table: &S,
    dest: impl Into<Destination>,
    mut progress: impl FnMut(Progress),
) -> Result<Written, Error> {
    let dest = dest.into();
    if let Some(path) = dest.file().filter(|path| is_same_file(path, table.path())) {
        return Err(Error::SameFile { path: path.to_owned(), input: table.path().to_owned() });
    }
    let (schema, metadata) = described(table);
    let row_bytes = Part::ALL.into_iter().filter_map(|part| Some(table.parts().row_bytes(table.parts().tensor(part)?)));
    let row_bytes = row_bytes.sum::<usize>().max(1);
    let rows_at_once = (COPY_BYTES / row_bytes).max(1);
    let n_rows = table.n_rows();
    let announced = |start: usize| start.min(n_rows)..start.saturating_add(rows_at_once).min(n_rows);
    let mut out = dest.open(schema, metadata)?;
    let mut start = 0;
    table.will_need(announced(0), false);
    while start < n_rows {
        let rows = announced(start);
        (1..=N_AHEAD).for_each(|n| table.will_need(announced(start + n * rows_at_once), n > 1));
        let [features, labels, categories, weights] = Part::ALL.map(|part| stored(table, part, rows.clone()));
        let (features, labels, categories, weights) = (features?, labels?, categories?, weights?);
        let parts = Parts {
            features: &bytemuck::cast_slice(&features.0)[..features.1],
            labels: &bytemuck::cast_slice(&labels.0)[..labels.1],
            categories: &bytemuck::cast_slice(&categories.0)[..categories.1 / size_of::<u32>()],
            weights: &bytemuck::cast_slice(&weights.0)[..weights.1 / size_of::<f32>()],
        };
        out.push(parts, None)?;
        table.done_with(rows.clone());
        start = rows.end;
        let bytes = |n: usize| n as u64 * row_bytes as u64;
        progress(Progress { bytes_read: bytes(start), total_bytes: bytes(n_rows), n_rows: start });
    }
    out.finish()
}

/// How many pieces are announced in advance, so that several requests to a server are in flight.
const N_AHEAD: usize = 4;

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
