use std::fmt::Debug;
use std::fs;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::folder::index_path;
use crate::description::describe;
use crate::dtype::Element;
use crate::error::{Error, IndexError, ShardMismatch};
use crate::format::{MAX_INDEX_BYTES, ShardEntry, ShardIndex};
use crate::parts::{Part, Parts, open_file};
use crate::row_store::{RowStore, Verified};
use crate::statistics::{ColumnStatistics, Moments};
use crate::streamed::{ReadAhead, StreamedTable};
use crate::table::Table;

/// A table of several files, open for reading: a folder with an index and shards, as [`ShardedWriter`](crate::ShardedWriter)
/// writes it.
///
/// Each shard is a [`Table`], copied or mapped, or a [`StreamedTable`]. Rows are numbered consecutively across shards. Gathering
/// accepts rows of any shards; borrowed rows must be in a single shard.
///
/// # Cost
/// The file of every shard is kept open; a mapped or streamed shard takes no memory for its rows.
#[derive(Debug)]
pub struct ShardedTable<S = Table> {
    /// The path of the index.
    path: PathBuf,
    shards: Vec<S>,
    /// The first row of each shard, followed by the total number of rows.
    starts: Vec<usize>,
    statistics: Option<Vec<ColumnStatistics>>,
}

impl ShardedTable {
    /// Opens the table in a folder, or the table of an index file, and copies its shards into memory.
    ///
    /// # Errors
    /// [`Error::Index`] if the index is not valid; [`Error::Shard`] if a shard is missing, or does not match the index;
    /// otherwise as for [`Table::open`], naming the shard.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), |shard| Table::open(shard))
    }

    /// Borrows the features of some rows of one shard.
    ///
    /// # Shapes
    /// `[rows.len(), n_cols]`, row-major.
    /// # Errors
    /// [`Error::AcrossShards`] if the rows are in several shards; otherwise as for [`Table::rows`].
    pub fn rows<T: Element>(&self, rows: Range<usize>) -> Result<&[T], Error> {
        self.check_range(&rows)?;
        let shard = self.shard_of(rows.start);
        let start = self.starts[shard];
        if rows.end > self.starts[shard + 1] {
            let shard_end = self.starts[shard + 1];
            return Err(Error::AcrossShards { path: self.path.clone(), start: rows.start, end: rows.end, shard_end });
        }
        self.shards[shard].rows(rows.start - start..rows.end - start)
    }
}

impl ShardedTable<StreamedTable> {
    /// Opens the table in a folder, or the table of an index file, to be read ahead into the memory of `ahead`, which all shards
    /// share.
    ///
    /// # Errors
    /// As for [`ShardedTable::open`].
    pub fn open_streamed(path: impl AsRef<Path>, ahead: &ReadAhead) -> Result<Self, Error> {
        Self::open_with(path.as_ref(), |shard| StreamedTable::open(shard, ahead))
    }
}

impl<S: RowStore> ShardedTable<S> {
    /// The number of shards.
    pub fn n_shards(&self) -> usize {
        self.shards.len()
    }

    /// One of the shards, which is also a table; `None` beyond the last.
    pub fn shard(&self, shard: usize) -> Option<&S> {
        self.shards.get(shard)
    }

    /// Which rows a shard has; `None` beyond the last.
    pub fn shard_rows(&self, shard: usize) -> Option<Range<usize>> {
        (shard < self.n_shards()).then(|| self.starts[shard]..self.starts[shard + 1])
    }

    /// Opens the shards in a folder with `open`.
    pub(crate) fn open_with(path: &Path, open: impl Fn(&Path) -> Result<S, Error>) -> Result<Self, Error> {
        let path = index_path(path);
        let open = |entry: &ShardEntry| {
            let shard_path = path.with_file_name(&entry.file_name);
            check_length(&shard_path, entry).map_err(|reason| mismatch(&shard_path, &path, reason))?;
            open(&shard_path)
        };
        Self::open_from(&path, || read_index(&path), |_| open)
    }

    /// Opens the shards of an index. `begin` gets the index and returns what opens each of its shards in turn. If a writer
    /// replaces the table meanwhile, the new one is opened.
    pub(super) fn open_from<O: FnMut(&ShardEntry) -> Result<S, Error>>(
        path: &Path,
        read_index: impl Fn() -> Result<Vec<u8>, Error>,
        begin: impl Fn(&ShardIndex) -> O,
    ) -> Result<Self, Error> {
        let mut json = read_index()?;
        loop {
            let opened = Self::open_index(path, &json, &begin);
            if opened.is_ok() {
                return opened;
            }
            let now = read_index()?;
            if now == json {
                return opened;
            }
            json = now;
        }
    }

    fn open_index<O: FnMut(&ShardEntry) -> Result<S, Error>>(
        path: &Path,
        json: &[u8],
        begin: &impl Fn(&ShardIndex) -> O,
    ) -> Result<Self, Error> {
        let index = ShardIndex::parse(json).map_err(|reason| Error::Index { path: path.to_owned(), reason })?;
        let mut open = begin(&index);
        let mut shards: Vec<S> = Vec::with_capacity(index.shards.len());
        let mut starts = vec![0];
        for entry in &index.shards {
            let shard = open(entry)?;
            check_shard(entry, shard.parts(), shards.first().map(S::parts))
                .map_err(|reason| mismatch(shard.path(), path, reason))?;
            // Cannot overflow: each number is at most that of its entry, and the index has added those up.
            starts.push(starts[starts.len() - 1] + shard.n_rows());
            shards.push(shard);
        }
        let statistics = merged(shards.iter().map(|shard| shard.parts().metadata.statistics.as_deref()));
        Ok(Self { path: path.to_owned(), shards, starts, statistics })
    }

    /// The shard that contains a row; the last shard for the row after the last one.
    fn shard_of(&self, row: usize) -> usize {
        // All full shards have the same size, so the guess is usually right.
        let guess = row / self.starts[1].max(1);
        if guess < self.shards.len() && (self.starts[guess]..self.starts[guess + 1]).contains(&row) {
            return guess;
        }
        self.starts[1..self.shards.len()].partition_point(|&start| start <= row)
    }

    /// Calls `each` for every shard with some of the rows: with the shard, its rows by their numbers within the shard, and its
    /// first row.
    fn each_shard(
        &self,
        rows: Range<usize>,
        mut each: impl FnMut(&S, Range<usize>, usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut row = rows.start;
        while row < rows.end {
            let shard = self.shard_of(row);
            let (start, end) = (self.starts[shard], rows.end.min(self.starts[shard + 1]));
            each(&self.shards[shard], row - start..end - start, start)?;
            row = end;
        }
        Ok(())
    }
}

describe!([S: RowStore] ShardedTable<S>);

impl<S: RowStore> RowStore for ShardedTable<S> {
    fn path(&self) -> &Path {
        &self.path
    }

    fn parts(&self) -> &Parts {
        self.shards[0].parts()
    }

    fn n_rows(&self) -> usize {
        self.starts[self.shards.len()]
    }

    fn reads_blocks(&self) -> bool {
        true
    }

    fn statistics(&self) -> Option<&[ColumnStatistics]> {
        self.statistics.as_deref()
    }

    fn each_row(&self, part: Part, rows: &[u32], mut take: impl FnMut(usize, &[u8])) -> Result<(), Error> {
        const AT_ONCE: usize = 256;
        let mut numbers = [0; AT_ONCE];
        let mut place = 0;
        while place < rows.len() {
            // A range of rows of one shard, numbered within the shard.
            let shard = self.shard_of(rows[place] as usize);
            let own = self.starts[shard]..self.starts[shard + 1];
            let rest = rows[place..].iter().take(AT_ONCE).take_while(|&&row| own.contains(&(row as usize)));
            let n = rest.zip(&mut numbers).map(|(&row, number)| *number = (row as usize - own.start) as u32).count();
            self.shards[shard].each_row(part, &numbers[..n], |at, bytes| take(place + at, bytes))?;
            place += n;
        }
        Ok(())
    }

    fn each_run(&self, part: Part, rows: Range<usize>, mut take: impl FnMut(usize, &[u8])) -> Result<(), Error> {
        let first = rows.start;
        self.each_shard(rows, |shard, within, start| {
            let place = start + within.start - first;
            shard.each_run(part, within, |at, bytes| take(place + at, bytes))
        })
    }

    fn will_need(&self, rows: Range<usize>, is_later: bool) {
        let _: Result<(), Error> = self.each_shard(rows, |shard, within, _| {
            shard.will_need(within, is_later);
            Ok(())
        });
    }

    fn done_with(&self, rows: Range<usize>) {
        let _: Result<(), Error> = self.each_shard(rows, |shard, within, _| {
            shard.done_with(within);
            Ok(())
        });
    }

    fn verify(&self, progress: &mut dyn FnMut(Verified)) -> Result<(), Error> {
        let summed_bytes = |shard: &S| shard.parts().checksums.as_ref().map_or(0, |sums| sums.range.start as u64);
        let of_bytes = self.shards.iter().map(summed_bytes).sum();
        let mut before = 0;
        for shard in &self.shards {
            shard.verify(&mut |Verified { n_bytes, .. }| progress(Verified { n_bytes: before + n_bytes, of_bytes }))?;
            before += summed_bytes(shard);
        }
        Ok(())
    }

    fn check_intact(&self) -> Result<(), Error> {
        self.shards.iter().try_for_each(RowStore::check_intact)
    }

    fn fingerprint(&self) -> Option<u64> {
        let sums: Option<Vec<u64>> = self.shards.iter().map(S::fingerprint).collect();
        let sums = sums?;
        Some(crate::table::fingerprint(sums.len() as u32, bytemuck::cast_slice(&sums)))
    }
}

fn mismatch(path: &Path, index: &Path, reason: ShardMismatch) -> Error {
    Error::Shard { path: path.to_owned(), index: index.to_owned(), reason }
}

fn read_index(path: &Path) -> Result<Vec<u8>, Error> {
    let io = Error::io(path, "read");
    let file = open_file(path)?;
    let found = file.metadata().map_err(io)?.len();
    if found > MAX_INDEX_BYTES {
        return Err(Error::Index { path: path.to_owned(), reason: IndexError::TooLong { found, limit: MAX_INDEX_BYTES } });
    }
    let mut json = Vec::new();
    file.take(MAX_INDEX_BYTES).read_to_end(&mut json).map_err(io)?;
    Ok(json)
}

/// Checked before a shard is opened, so that a truncated file is not copied first.
fn check_length(path: &Path, entry: &ShardEntry) -> Result<(), ShardMismatch> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(ShardMismatch::Missing),
        Ok(metadata) if metadata.is_file() && metadata.len() != entry.n_bytes => {
            Err(ShardMismatch::Bytes { expected: entry.n_bytes, found: metadata.len() })
        }
        // All other problems are reported when the shard is opened.
        _ => Ok(()),
    }
}

fn check_shard(entry: &ShardEntry, parts: &Parts, first: Option<&Parts>) -> Result<(), ShardMismatch> {
    if parts.n_rows as u64 != entry.n_rows {
        return Err(ShardMismatch::Rows { expected: entry.n_rows, found: parts.n_rows as u64 });
    }
    if parts.header_crc32 != entry.header_crc32 {
        return Err(ShardMismatch::Header { expected: entry.header_crc32, found: parts.header_crc32 });
    }
    let Some(first) = first else { return Ok(()) };
    let (of_first, of_parts) = (&first.metadata, &parts.metadata);
    same("shape of a row", &first.features.shape[1..], &parts.features.shape[1..])?;
    same("dtype", first.features.dtype, parts.features.dtype)?;
    same("dtype of labels", first.label_dtype(), parts.label_dtype())?;
    same("number of labels", first.n_labels(), parts.n_labels())?;
    same("number of categories", first.n_categories(), parts.n_categories())?;
    same("tensor of weights", first.row_weights(), parts.row_weights())?;
    same("list of column names", &of_first.column_names, &of_parts.column_names)?;
    same("list of dictionaries", &of_first.dictionaries, &of_parts.dictionaries)?;
    same("list of classes", &of_first.classes, &of_parts.classes)
}

fn same<T: PartialEq + Debug>(part: &'static str, first: T, found: T) -> Result<(), ShardMismatch> {
    if first == found {
        return Ok(());
    }
    Err(ShardMismatch::Schema { part, expected: format!("{first:?}"), found: format!("{found:?}") })
}

fn merged<'a>(shards: impl Iterator<Item = Option<&'a [ColumnStatistics]>>) -> Option<Vec<ColumnStatistics>> {
    let mut all: Option<Moments> = None;
    for statistics in shards {
        let moments = Moments::from_statistics(statistics?);
        match &mut all {
            Some(all) => all.merge(&moments),
            none => *none = Some(moments),
        }
    }
    all.map(|moments| moments.statistics())
}
