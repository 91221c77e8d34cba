use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::read_at::read_exact_at;
use crate::error::Error;
use crate::parts::{Part, Parts};
#[cfg(feature = "remote")]
use crate::remote::{FETCH_BYTES, Object};

/// The file of a table, read at given positions.
#[derive(Debug)]
pub(super) struct TableFile {
    pub(super) source: Source,
    pub(super) parts: Parts,
}

/// Where the bytes of a table are.
#[derive(Debug)]
pub(super) enum Source {
    File {
        path: PathBuf,
        file: File,
    },
    #[cfg(feature = "remote")]
    Object(Box<Object>),
}

impl TableFile {
    /// The path or URL, for errors.
    pub(super) fn path(&self) -> &Path {
        match &self.source {
            Source::File { path, .. } => path,
            #[cfg(feature = "remote")]
            Source::Object(object) => object.path(),
        }
    }

    /// Ends the reads that wait for a server.
    pub(super) fn abandon(&self) {
        match &self.source {
            Source::File { .. } => {}
            #[cfg(feature = "remote")]
            Source::Object(object) => object.abandon(),
        }
    }

    /// How many threads should read at a time: a server needs time for each request. More of them than requests at a time, since
    /// some wait for a block that another one is reading, as that of the labels of many rows.
    pub(super) fn n_readers(&self) -> usize {
        match &self.source {
            Source::File { .. } => 1,
            #[cfg(feature = "remote")]
            Source::Object(object) => 2 * object.n_parallel(),
        }
    }

    /// The first of `rows`, as many as one thread reads at a time, and whether they are on this machine. If they are, a disk
    /// reaches its full speed, and a budget holds several; of a server about a block, so that several are requested at a time,
    /// with the labels of its rows.
    pub(super) fn first_piece(&self, rows: &Range<usize>) -> (Range<usize>, bool) {
        let first = |n_bytes: usize| {
            let n_rows = n_bytes / size_of::<u64>() / self.words_of(1).max(1);
            rows.start..rows.end.min(rows.start + n_rows.max(1))
        };
        let large = first(4 << 20);
        match &self.source {
            Source::File { .. } => (large, true),
            #[cfg(feature = "remote")]
            Source::Object(object) => {
                let mut tensors = Part::ALL.into_iter().filter_map(|part| self.parts.tensor(part));
                let is_cached = tensors.all(|tensor| object.is_cached(self.parts.range_of(tensor, large.clone())));
                if is_cached { (large, true) } else { (first(FETCH_BYTES / 8 * 9), false) }
            }
        }
    }

    /// Reads bytes of the file into the start of `words`, which aligns them for any element type.
    pub(super) fn read(&self, bytes: Range<usize>, words: &mut [u64]) -> Result<(), Error> {
        let n_bytes = bytes.len();
        self.read_exact(bytes, &mut bytemuck::cast_slice_mut(words)[..n_bytes])
    }

    /// Reads bytes of the file into `out`, which has their length.
    pub(super) fn read_exact(&self, bytes: Range<usize>, out: &mut [u8]) -> Result<(), Error> {
        match &self.source {
            Source::File { path, file } => {
                let read = read_exact_at(file, out, bytes.start as u64);
                read.map_err(Error::io(path, "read"))
            }
            #[cfg(feature = "remote")]
            Source::Object(object) => object.read(bytes, out),
        }
    }

    /// The number of words for all parts of some rows, each part rounded up to whole words.
    pub(super) fn words_of(&self, n_rows: usize) -> usize {
        self.parts_of(n_rows).map(|(_, n_bytes)| n_bytes.div_ceil(size_of::<u64>())).sum()
    }

    /// The parts of the rows, and the number of bytes that `n_rows` rows take of each.
    pub(super) fn parts_of(&self, n_rows: usize) -> impl Iterator<Item = (Part, usize)> {
        let has = move |part| Some((part, n_rows * self.parts.row_bytes(self.parts.tensor(part)?)));
        Part::ALL.into_iter().filter_map(has)
    }
}
