//! Which device has last written to a buffer.

use crate::device::Device;
use crate::record::persistent::Persistent;

impl Persistent {
    /// The device on which the buffer was last written, from the host or by a program, and the number of such writes on all
    /// devices, where a call of [`Executable::run`](crate::Executable::run) counts as one. `None` before the first.
    pub fn last_write(&self) -> Option<(Device, u64)> {
        let last = self.last_writer();
        let (device, n_writes) = last.as_ref()?;
        Some((device.downcast_ref::<Device>()?.clone(), *n_writes))
    }

    /// Notes a write on `device`.
    pub(crate) fn note_write(&self, device: &Device) {
        let mut last = self.last_writer();
        match &mut *last {
            Some((known, n_writes)) if known.downcast_ref::<Device>().is_some_and(|known| known.is_same(device)) => {
                *n_writes += 1
            }
            other => {
                let n_writes = other.as_ref().map_or(0, |(_, n_writes)| *n_writes) + 1;
                *other = Some((Box::new(device.clone()), n_writes));
            }
        }
    }
}
