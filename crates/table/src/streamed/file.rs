use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;

use super::read_at::read_exact_at;
use crate::error::Error;
use crate::parts::{Part, Parts};

/// The file of a table, read at given positions.
#[derive(Debug)]
pub(super) struct TableFile {
    pub(super) path: PathBuf,
    pub(super) file: File,
    pub(super) parts: Parts,
}

impl TableFile {
    /// Reads bytes of the file into the start of `words`, which aligns them for any element type.
    pub(super) fn read(&self, bytes: Range<usize>, words: &mut [u64]) -> Result<(), Error> {
        let into = &mut bytemuck::cast_slice_mut(words)[..bytes.len()];
        let read = read_exact_at(&self.file, into, bytes.start as u64);
        read.map_err(|cause| Error::Io { path: self.path.clone(), action: "read", cause })
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
