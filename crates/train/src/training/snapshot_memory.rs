use brisk_nn::tensor::program::{Device, Persistent};

use crate::checkpoint::SharedSlice;
use crate::error::Error;

/// Memory for snapshots. Memory that no checkpoint uses any more is reused, because new memory is mapped page by page, which
/// takes longer than the copy.
#[derive(Debug, Default)]
pub(super) struct SnapshotMemory {
    slices: Vec<SharedSlice<f32>>,
}

impl SnapshotMemory {
    pub(super) fn read(&mut self, device: &Device, buffer: &Persistent) -> Result<SharedSlice<f32>, Error> {
        let len = buffer.len_bytes() / size_of::<f32>();
        let free = self.slices.iter_mut().position(|slice| slice.len() == len && slice.get_mut().is_some());
        let mut slice = free.map_or_else(|| SharedSlice::zeroed(len), |free| self.slices.swap_remove(free));
        device.read_into(buffer, slice.get_mut().expect("nothing else has a slice that is new or free"))?;
        self.slices.push(slice.clone());
        Ok(slice)
    }
}
