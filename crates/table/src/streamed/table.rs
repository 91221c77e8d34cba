use std::cell::Cell;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use super::file::{Source, TableFile};
use super::read_ahead::{Piece, ReadAhead};
use crate::description::describe;
use crate::error::Error;
use crate::format::Tensor;
use crate::parts::{Opened, Part, Parts};
#[cfg(feature = "remote")]
use crate::remote::{Object, Place, Remote};
use crate::row_store::{PREFETCHED_ROWS, RowStore, Verified, prefetch};
use crate::table::fingerprint;
use crate::tensor_names::TensorNames;
use crate::verify::{self, ReadBytes};

/// The number of bytes read at a time for rows in order that were not announced.
const SCRATCH_BYTES: usize = 256 << 10;

/// A table that stays on disk: rows are read when they are gathered, or before that, into memory of a fixed size.
///
/// Use it for tables larger than memory or address space. It has no safety conditions, because it maps nothing: a file that
/// shrinks or a disk that fails is an error rather than a signal. Rows cannot be borrowed, only gathered. The loader's order of
/// shuffled blocks announces the blocks that it needs next; a thread reads each of them ahead with one read. Rows in order are
/// read in large pieces. Rows that are gathered at random without an announcement are read one by one, which is slow but correct.
///
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("ramp.safetensors");
/// use brisk_table::{ReadAhead, Schema, StreamedTable, TableWriter};
///
/// let mut writer = TableWriter::create(&path, Schema::named(["x"]))?;
/// writer.push(&[0.5_f32, 1.5, 2.5], &[0.0_f32, 1.0, 0.0])?;
/// writer.finish()?;
///
/// let table = StreamedTable::open(&path, &ReadAhead::new(64 << 20))?;
/// # #[cfg(feature = "loader")] {
/// use brisk_loader::{RowBuffers, RowSource, RowSelection};
/// let (mut features, mut labels) = ([0.0; 2], [0.0; 2]);
/// table.gather(RowSelection::Numbers(&[2, 1]), RowBuffers::new(&mut features, &mut labels))?;
/// assert_eq!((features, labels), ([2.5, 1.5], [0.0, 1.0]));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StreamedTable {
    file: Arc<TableFile>,
    ahead: ReadAhead,
    /// Its number in `ahead`.
    number: u64,
}

impl StreamedTable {
    /// Opens the table at `path`, whose rows are read ahead into the memory of `ahead`.
    ///
    /// # Errors
    /// As for [`Table::open`](crate::Table::open).
    /// # Cost
    /// Reads the header.
    pub fn open(path: impl AsRef<Path>, ahead: &ReadAhead) -> Result<Self, Error> {
        Self::open_named(path, &TensorNames::default(), ahead)
    }

    /// Like [`open`](Self::open), for a file with other names for its tensors.
    pub fn open_named(path: impl AsRef<Path>, names: &TensorNames, ahead: &ReadAhead) -> Result<Self, Error> {
        let Opened { path, file, parts, .. } = Opened::named(path.as_ref(), names)?;
        Ok(Self::new(Source::File { path, file }, parts, ahead))
    }

    fn new(source: Source, parts: Parts, ahead: &ReadAhead) -> Self {
        Self { file: Arc::new(TableFile { source, parts }), ahead: ahead.clone(), number: ahead.register() }
    }

    /// Waits until a row that was announced has been read or given up.
    fn wait_for(&self, row: usize) -> Result<(), Error> {
        self.ahead.wait_for(self.number, row)
    }

    /// Reads some rows of a tensor from the file, and calls `take` with each piece and its first row.
    fn read(&self, tensor: &Tensor, rows: Range<usize>, mut take: impl FnMut(usize, &[u8])) -> Result<(), Error> {
        let rows_at_once = (SCRATCH_BYTES / self.file.parts.row_bytes(tensor).max(1)).max(1);
        let mut scratch = SCRATCH.take();
        let read = rows.clone().step_by(rows_at_once).try_for_each(|start| {
            let bytes = self.file.parts.range_of(tensor, start..rows.end.min(start + rows_at_once));
            let n_bytes = bytes.len();
            if scratch.len() * size_of::<u64>() < n_bytes {
                scratch.resize(n_bytes.div_ceil(size_of::<u64>()), 0);
            }
            self.file.read(bytes, &mut scratch)?;
            take(start, &bytemuck::cast_slice(&scratch)[..n_bytes]);
            Ok(())
        });
        SCRATCH.set(scratch);
        read
    }
}

#[cfg(feature = "remote")]
impl StreamedTable {
    /// Opens the table at a URL, whose rows are read ahead into the memory of `ahead`, several requests at a time.
    ///
    /// # Errors
    /// As for [`Table::open_url`](crate::Table::open_url).
    /// # Cost
    /// Reads the header. Rows that are gathered without an announcement are read block by block, one request after another.
    pub fn open_url(url: &str, ahead: &ReadAhead, remote: &Remote) -> Result<Self, Error> {
        match Place::of(url)? {
            Place::File(path) => Self::open(path, ahead),
            Place::Server(location) => Self::of_object(Object::open(&location, remote)?, ahead),
        }
    }

    pub(crate) fn of_object(object: Object, ahead: &ReadAhead) -> Result<Self, Error> {
        let parts = Parts::of_object(&object)?;
        Ok(Self::new(Source::Object(Box::new(object)), parts, ahead))
    }
}

thread_local! {
    static SCRATCH: Cell<Vec<u64>> = const { Cell::new(Vec::new()) };
}

describe!([] StreamedTable);

impl Drop for StreamedTable {
    fn drop(&mut self) {
        self.file.abandon();
        self.ahead.release(self.number, 0..self.file.parts.n_rows);
    }
}

impl RowStore for StreamedTable {
    fn path(&self) -> &Path {
        self.file.path()
    }

    fn parts(&self) -> &Parts {
        &self.file.parts
    }

    fn n_rows(&self) -> usize {
        self.file.parts.n_rows
    }

    fn reads_blocks(&self) -> bool {
        true
    }

    fn each_row(&self, part: Part, rows: &[u32], mut take: impl FnMut(usize, &[u8])) -> Result<(), Error> {
        let Some(tensor) = self.file.parts.tensor(part) else { return Ok(()) };
        let row_bytes = self.file.parts.row_bytes(tensor);
        let (mut place, mut n_here, mut n_read) = (0, 0, 0);
        while place < rows.len() {
            let pieces = self.ahead.pieces(self.number);
            let mut on_its_way = None;
            while place < rows.len() && on_its_way.is_none() {
                let (mut found, mut n_found, mut missing) = ([&[][..]; PREFETCHED_ROWS], 0, None);
                for (&row, found) in rows[place..].iter().zip(&mut found) {
                    let row = row as usize;
                    let Some(Piece { rows: there, extent: Some(extent) }) = piece_of(&pieces, row) else {
                        missing = Some(row);
                        break;
                    };
                    *found = &extent.part(part)[(row - there.start) * row_bytes..][..row_bytes];
                    prefetch(found);
                    n_found += 1;
                }
                found[..n_found].iter().zip(place..).for_each(|(stored, place)| take(place, stored));
                place += n_found;
                n_here += n_found;
                match missing {
                    Some(row) if piece_of(&pieces, row).is_some() => on_its_way = Some(row),
                    Some(row) => {
                        self.read(tensor, row..row + 1, |_, bytes| take(place, bytes))?;
                        place += 1;
                        n_read += 1;
                    }
                    None => {}
                }
            }
            drop(pieces);
            if let Some(row) = on_its_way {
                self.wait_for(row)?;
            }
        }
        self.ahead.count(n_here, n_read);
        Ok(())
    }

    fn each_run(&self, part: Part, rows: Range<usize>, mut take: impl FnMut(usize, &[u8])) -> Result<(), Error> {
        let Some(tensor) = self.file.parts.tensor(part) else { return Ok(()) };
        let row_bytes = self.file.parts.row_bytes(tensor);
        let mut row = rows.start;
        let (mut n_here, mut n_read) = (0, 0);
        while row < rows.end {
            let pieces = self.ahead.pieces(self.number);
            match piece_of(&pieces, row) {
                Some(Piece { rows: there, extent: Some(extent) }) => {
                    let end = rows.end.min(there.end);
                    let stored = extent.part(part);
                    take(row - rows.start, &stored[(row - there.start) * row_bytes..(end - there.start) * row_bytes]);
                    n_here += end - row;
                    row = end;
                }
                Some(_) => {
                    drop(pieces);
                    self.wait_for(row)?;
                }
                None => {
                    let next = pieces.iter().map(|piece| piece.rows.start).find(|&start| start > row);
                    let end = rows.end.min(next.unwrap_or(usize::MAX));
                    drop(pieces);
                    self.read(tensor, row..end, |start, bytes| take(start - rows.start, bytes))?;
                    n_read += end - row;
                    row = end;
                }
            }
        }
        self.ahead.count(n_here, n_read);
        Ok(())
    }

    fn will_need(&self, rows: Range<usize>, is_later: bool) {
        self.ahead.announce(self.number, &self.file, rows, is_later);
    }

    fn done_with(&self, rows: Range<usize>) {
        self.ahead.release(self.number, rows);
    }

    fn verify(&self, progress: &mut dyn FnMut(Verified)) -> Result<(), Error> {
        verify::verify(self, progress)
    }

    fn fingerprint(&self) -> Option<u64> {
        let sums = self.file.parts.checksums.as_ref()?;
        let mut scratch = Vec::new();
        let sums = self.read_bytes(sums.range.clone(), &mut scratch).ok()?;
        Some(fingerprint(self.file.parts.header_crc32, sums))
    }
}

impl ReadBytes for StreamedTable {
    fn read_bytes<'a>(&'a self, bytes: Range<usize>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error> {
        scratch.resize(bytes.len(), 0);
        self.file.read_exact(bytes, scratch)?;
        Ok(scratch)
    }
}

/// The piece that contains a row; pieces are in the order of their rows.
fn piece_of(pieces: &[Piece], row: usize) -> Option<&Piece> {
    let after = pieces.partition_point(|piece| piece.rows.start <= row);
    let piece = &pieces[after.checked_sub(1)?];
    (row < piece.rows.end).then_some(piece)
}
