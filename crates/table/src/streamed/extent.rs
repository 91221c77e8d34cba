use std::ops::Range;
use std::sync::Arc;

use super::file::TableFile;
use super::pool::Pool;
use crate::Error;
use crate::parts::Part;

/// All parts of some rows that lie one after another, in memory. Its memory goes back to the pool when the last who reads it is done.
#[derive(Debug)]
pub(super) struct Extent {
    pub(super) rows: Range<usize>,
    words: Vec<u64>,
    pool: Arc<Pool>,
}

impl Extent {
    /// Reads the rows into memory that was taken from the pool for them.
    pub(super) fn read(file: &TableFile, rows: Range<usize>, words: Vec<u64>, pool: Arc<Pool>) -> Result<Self, Error> {
        let mut extent = Self { rows, words, pool };
        let mut rest = extent.words.as_mut_slice();
        for (part, n_bytes) in file.parts_of(extent.rows.len()) {
            let (words, after) = rest.split_at_mut(n_bytes.div_ceil(size_of::<u64>()));
            let tensor = file.parts.tensor(part).expect("rows have the part, or it would not be among theirs");
            file.read(file.parts.range_of(tensor, extent.rows.clone()), words)?;
            rest = after;
        }
        Ok(extent)
    }

    /// The bytes of a part of all its rows.
    pub(super) fn part(&self, file: &TableFile, wanted: Part) -> &[u8] {
        let mut start = 0;
        for (part, n_bytes) in file.parts_of(self.rows.len()) {
            let n_words = n_bytes.div_ceil(size_of::<u64>());
            if part == wanted {
                return &bytemuck::cast_slice(&self.words[start..start + n_words])[..n_bytes];
            }
            start += n_words;
        }
        &[]
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.words));
    }
}
