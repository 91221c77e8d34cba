use std::ops::Range;
use std::sync::Arc;

use super::file::TableFile;
use super::memory::Memory;
use super::pool::Pool;
use crate::error::Error;
use crate::parts::Part;

/// All parts of some consecutive rows, in memory. The memory returns to the pool when the extent is dropped by its last reader.
#[derive(Debug)]
pub(super) struct Extent {
    pub(super) rows: Range<usize>,
    memory: Memory,
    /// The bytes of each part in `memory`, in the order of [`Part::ALL`].
    parts: [Range<usize>; Part::ALL.len()],
    pool: Arc<Pool>,
}

impl Extent {
    /// Reads the rows into memory that was taken from the pool for them.
    pub(super) fn read(file: &TableFile, rows: Range<usize>, memory: Memory, pool: Arc<Pool>) -> Result<Self, Error> {
        let mut extent = Self { rows, memory, parts: [const { 0..0 }; Part::ALL.len()], pool };
        let mut start = 0;
        for (part, n_bytes) in file.parts_of(extent.rows.len()) {
            let tensor = file.parts.tensor(part).expect("rows have the part, or it would not be among theirs");
            file.read(file.parts.range_of(tensor, extent.rows.clone()), &mut extent.memory.words_mut()[start..])?;
            extent.parts[part as usize] = start * size_of::<u64>()..start * size_of::<u64>() + n_bytes;
            start += n_bytes.div_ceil(size_of::<u64>());
        }
        Ok(extent)
    }

    /// The bytes of a part of all rows of the extent; empty if the table does not have the part.
    pub(super) fn part(&self, part: Part) -> &[u8] {
        &bytemuck::cast_slice(self.memory.words())[self.parts[part as usize].clone()]
    }
}

impl Drop for Extent {
    fn drop(&mut self) {
        self.pool.give_back(std::mem::take(&mut self.memory));
    }
}
