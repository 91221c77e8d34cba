use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::checksum::checksum;
use crate::description::describe;
use crate::dtype::{DType, Element};
use crate::error::Error;
use crate::format::{FEATURES, LABELS, Tensor};
use crate::map::{Advice, Bytes};
use crate::parts::{Opened, Part, Parts};
#[cfg(feature = "remote")]
use crate::remote::{Object, Place, Remote};
use crate::row_store::{PREFETCHED_ROWS, RowStore, Verified, prefetch};
use crate::tensor_names::TensorNames;
use crate::verify::{self, ReadBytes};

/// A table on disk, open for reading; its rows are borrowed without decoding.
///
/// [`Table::open`] copies the file into memory. [`Table::open_mapped`] borrows it from the page cache, and is `unsafe`.
/// A table is `Sync`, so any number of threads can share it.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    bytes: Bytes,
    parts: Parts,
    /// Set once the copied bytes have been verified.
    is_intact: OnceLock<()>,
}

impl Table {
    /// Opens the table at `path` and copies it into memory.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::NotAFile`] if it cannot be read, [`Error::Format`] if it is not a table or is truncated.
    /// # Cost
    /// Reads the file once. The rows are neither decoded nor checked, so a damaged byte becomes another number. [`Table::verify`]
    /// detects it. Training with `brisk-train` calls `verify` before the first step for tables that were copied into memory; for
    /// others, call it if the file may be damaged.
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
    /// let table = Table::open(&path)?;
    /// assert_eq!((table.n_rows(), table.n_cols()), (2, 2));
    /// assert_eq!(table.rows::<f32>(0..2)?, [0.0, 1.0, 1.0, 1.0]);
    /// assert_eq!(table.labels::<f32>()?, [1.0, 0.0]);
    /// assert_eq!(table.column_names(), ["a", "b"]);
    /// table.verify()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_named(path, &TensorNames::default())
    }

    /// Like [`open`](Self::open), for a file with other names for its tensors.
    pub fn open_named(path: impl AsRef<Path>, names: &TensorNames) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), names, |mut file, n_bytes| {
            io::Seek::rewind(&mut file)?;
            Bytes::read(file, n_bytes)
        })
    }

    /// Opens the table at a URL and copies it into memory, several requests at a time: of a server (`https:`, `s3:`, `gs:` or
    /// `az:`, each with its feature), or of this machine (`file:`). Every block is checked against the checksums of the table.
    ///
    /// # Errors
    /// [`Error::Remote`] if it cannot be read, or is replaced meanwhile; [`Error::FeatureOff`] if the scheme of the URL needs a
    /// feature that is off; [`Error::Checksum`] if the bytes are not those that were written; otherwise as for
    /// [`open`](Self::open).
    /// # Examples
    /// ```no_run
    /// use brisk_table::{Remote, RemoteOptions, Table};
    ///
    /// let remote = Remote::new(RemoteOptions::default())?;
    /// let table = Table::open_url("https://example.org/higgs.safetensors", &remote)?;
    /// # Ok::<(), brisk_table::Error>(())
    /// ```
    #[cfg(feature = "remote")]
    pub fn open_url(url: &str, remote: &Remote) -> Result<Self, Error> {
        match Place::of(url)? {
            Place::File(path) => Self::open(path),
            Place::Server(location) => Self::of_object(&Object::open(&location, remote)?),
        }
    }

    #[cfg(feature = "remote")]
    pub(crate) fn of_object(object: &Object) -> Result<Self, Error> {
        let parts = Parts::of_object(object)?;
        let path = object.path().to_owned();
        let mut read = Ok(());
        let bytes = Bytes::filled(object.n_bytes(), |copy| {
            read = object.read_all(copy);
            Ok::<_, io::Error>(())
        });
        let bytes = bytes.map_err(Error::io(&path, "keep in memory"))?;
        read?;
        // Blocks were checked when they were read.
        Ok(Self { path, bytes, parts, is_intact: OnceLock::from(()) })
    }

    pub(crate) fn open_with(
        path: &Path,
        names: &TensorNames,
        load: impl FnOnce(&File, u64) -> io::Result<Bytes>,
    ) -> Result<Self, Error> {
        let opened = Opened::named(path, names)?;
        let bytes = load(&opened.file, opened.n_bytes).map_err(Error::io(path, "read"))?;
        // The header was read before; if the file has changed since, the header is not valid for it.
        if bytes.as_slice().len() as u64 != opened.n_bytes {
            return Err(Error::io(path, "read")(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(Self { path: opened.path, bytes, parts: opened.parts, is_intact: OnceLock::new() })
    }

    /// Borrows the features of some rows.
    ///
    /// # Shapes
    /// `[rows.len(), n_cols]`, row-major.
    /// # Errors
    /// [`Error::RowsOutOfRange`]; [`Error::WrongDType`] if `T` is not what the table holds.
    #[inline]
    pub fn rows<T: Element>(&self, rows: Range<usize>) -> Result<&[T], Error> {
        self.check_dtype::<T>(FEATURES, self.parts.features.dtype)?;
        self.row_bytes(rows).map(cast)
    }

    /// Borrows the features of some rows as stored in the file, little-endian, whatever their dtype.
    ///
    /// # Errors
    /// [`Error::RowsOutOfRange`].
    #[inline]
    pub fn row_bytes(&self, rows: Range<usize>) -> Result<&[u8], Error> {
        self.check_range(&rows)?;
        Ok(&self.bytes.as_slice()[self.parts.range_of(&self.parts.features, rows)])
    }

    /// Borrows all labels: `[n_rows, n_labels]`, row-major.
    ///
    /// # Errors
    /// [`Error::WrongDType`] if `T` is not what the table holds; [`Error::NoLabels`] if it was opened without labels.
    #[inline]
    pub fn labels<T: Element>(&self) -> Result<&[T], Error> {
        let Some(labels) = &self.parts.labels else {
            return Err(Error::NoLabels { path: self.path.clone() });
        };
        self.check_dtype::<T>(LABELS, labels.dtype)?;
        Ok(cast(self.bytes_of(labels)))
    }

    /// Borrows the categories of some rows: codes of the [`dictionaries`](Self::dictionaries), 0 where a value is missing or
    /// unknown.
    ///
    /// # Shapes
    /// `[rows.len(), n_categories]`, row-major; empty for a table without categories.
    /// # Errors
    /// [`Error::RowsOutOfRange`].
    #[inline]
    pub fn categories(&self, rows: Range<usize>) -> Result<&[u32], Error> {
        self.check_range(&rows)?;
        let Some(tensor) = &self.parts.categories else { return Ok(&[]) };
        Ok(cast(&self.bytes.as_slice()[self.parts.range_of(tensor, rows)]))
    }

    /// Borrows all weights: `[n_rows]`; `None` if rows have no weights.
    #[inline]
    pub fn weights(&self) -> Option<&[f32]> {
        Some(cast(self.bytes_of(self.parts.weights.as_ref()?)))
    }

    /// Tells the system how rows will be read. Does nothing for a table that was copied.
    ///
    /// # Errors
    /// [`Error::Io`] if the system rejects the hint; the table can still be used.
    pub fn advise(&self, advice: Advice) -> Result<(), Error> {
        self.bytes.advise(advice).map_err(Error::io(&self.path, "advise on"))
    }

    fn check_dtype<T: Element>(&self, name: &'static str, stored: DType) -> Result<(), Error> {
        if stored == T::DTYPE { Ok(()) } else { Err(self.wrong_dtype(name, stored, T::DTYPE)) }
    }

    fn bytes_of(&self, tensor: &Tensor) -> &[u8] {
        &self.bytes.as_slice()[tensor.range.clone()]
    }
}

describe!([] Table);

impl RowStore for Table {
    fn path(&self) -> &Path {
        &self.path
    }

    fn parts(&self) -> &Parts {
        &self.parts
    }

    fn n_rows(&self) -> usize {
        self.parts.n_rows
    }

    fn reads_blocks(&self) -> bool {
        false
    }

    #[inline]
    fn each_row(&self, part: Part, rows: &[u32], mut take: impl FnMut(usize, &[u8])) -> Result<(), Error> {
        let Some(tensor) = self.parts.tensor(part) else { return Ok(()) };
        let (stored, row_bytes) = (self.bytes_of(tensor), self.parts.row_bytes(tensor));
        let of_row = |row: &u32| &stored[*row as usize * row_bytes..][..row_bytes];
        for (rows, first) in rows.chunks(PREFETCHED_ROWS).zip((0..).step_by(PREFETCHED_ROWS)) {
            rows.iter().for_each(|row| prefetch(of_row(row)));
            rows.iter().zip(first..).for_each(|(row, place)| take(place, of_row(row)));
        }
        Ok(())
    }

    fn each_run(&self, part: Part, rows: Range<usize>, mut take: impl FnMut(usize, &[u8])) -> Result<(), Error> {
        let Some(tensor) = self.parts.tensor(part) else { return Ok(()) };
        take(0, &self.bytes.as_slice()[self.parts.range_of(tensor, rows)]);
        Ok(())
    }

    fn will_need(&self, rows: Range<usize>, is_later: bool) {
        if is_later {
            return;
        }
        for tensor in Part::ALL.into_iter().filter_map(|part| self.parts.tensor(part)) {
            self.bytes.will_need(self.parts.range_of(tensor, rows.clone()));
        }
    }

    /// The system reclaims pages of a file when it needs memory. Releasing them sooner causes page faults in the next epoch,
    /// which cost a seventh of the speed of reading in order from a warm map.
    fn done_with(&self, _rows: Range<usize>) {}

    fn verify(&self, progress: &mut dyn FnMut(Verified)) -> Result<(), Error> {
        verify::verify(self, progress)
    }

    fn check_intact(&self) -> Result<(), Error> {
        // A map may change afterwards.
        if matches!(self.bytes, Bytes::Copied(_)) && self.parts.checksums.is_some() && self.is_intact.get().is_none() {
            self.verify()?;
            self.is_intact.get_or_init(|| ());
        }
        Ok(())
    }

    fn fingerprint(&self) -> Option<u64> {
        let sums = self.parts.checksums.as_ref()?;
        Some(fingerprint(self.parts.header_crc32, self.bytes_of(sums)))
    }
}

impl ReadBytes for Table {
    fn read_bytes<'a>(&'a self, bytes: Range<usize>, _scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        Ok(&self.bytes.as_slice()[bytes])
    }
}

/// A number that identifies a table: a hash of the checksums of the header and of all blocks.
pub(crate) fn fingerprint(header_crc32: u32, sums: &[u8]) -> u64 {
    u64::from(header_crc32) << 32 | u64::from(checksum(sums))
}

/// The bytes of a tensor as a slice of its elements.
///
/// # Panics
/// If they are not aligned, which was checked when the table was opened.
fn cast<T: Element>(bytes: &[u8]) -> &[T] {
    bytemuck::try_cast_slice(bytes).expect("tensors are aligned and hold whole elements, as was checked on opening")
}
