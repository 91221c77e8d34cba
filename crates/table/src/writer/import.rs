//! Methods of the writer that only importers use.

use super::TableWriter;
use super::tensors::UNKNOWN_NAMES_BYTES;
use crate::error::Error;

impl TableWriter {
    /// Leaves room in the header for classes that are not known yet; called before the first row.
    pub(crate) fn leave_room_for_classes(&mut self) -> Result<(), Error> {
        let data_start = self.out.data_start + UNKNOWN_NAMES_BYTES as u64;
        self.out.move_to(data_start).map_err(|source| self.failed(source))
    }

    /// Replaces every label, which must be a `u32`, by the number at that index.
    pub(crate) fn renumber_labels(&mut self, numbers: Vec<u32>) {
        self.label_numbers = Some(numbers);
    }
}
