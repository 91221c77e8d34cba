use crate::device::device::{Device, check_host_range};
use crate::error::Error;
use crate::executor::Staging;
use crate::record::upload::Upload;

/// A ring of staging memory for host values that are written to a device repeatedly: it is allocated once, and written while the
/// device works on earlier values.
///
/// [`Device::write`] allocates staging memory for each call, which is fine for weights and counters. Use this type for rows that
/// are streamed: [`write`](Self::write) fills the next slot, submits its copy in order with the runs, and returns. If all slots
/// are in flight it waits for the oldest, so the host is never ahead by more slots than the ring has. The CPU executor needs no
/// staging: there a write is one copy.
///
/// # Examples
/// ```
/// use brisk_program::{Device, Persistent, Upload, kernels::DType};
///
/// let device = Device::cpu()?;
/// let (x, labels) = (Persistent::new("x", DType::F32, 4), Persistent::new("labels", DType::U8, 2));
/// let mut uploads = device.uploads(1024, 2)?;
/// uploads.write(&[Upload::new(&x, 0, &[1.0_f32, 2.0, 3.0, 4.0]), Upload::new(&labels, 1, &[7_u8])])?;
/// uploads.write(&[Upload::new(&x, 2, &[5.0_f32])])?;
/// assert_eq!(device.read::<f32>(&x)?, [1.0, 2.0, 5.0, 4.0]);
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug)]
pub struct Uploads {
    device: Device,
    staging: Box<dyn Staging>,
}

impl Uploads {
    pub(crate) fn new(device: &Device, slot_bytes: usize, n_slots: usize) -> Result<Self, Error> {
        Ok(Self { device: device.clone(), staging: device.executor().clone().staging(slot_bytes, n_slots)? })
    }

    /// Copies all `uploads` into staging memory and submits them, in stream order with the runs before and after. The values may
    /// change as soon as this returns. Values longer than a slot use several slots.
    ///
    /// # Cost
    /// On a GPU one submit per filled slot. Bytes and halves that share a 4-byte word with neighbours that must not change cost
    /// as much as in [`Device::write_at`].
    ///
    /// # Errors
    /// [`Error::HostType`] for values of another type, [`Error::HostRange`] if they reach beyond their buffer, with nothing
    /// written; [`Error::OutOfMemory`], [`Error::DeviceFailed`].
    pub fn write(&mut self, uploads: &[Upload<'_>]) -> Result<(), Error> {
        for upload in uploads {
            upload.check_type()?;
            check_host_range(upload.to, upload.start, upload.bytes.len())?;
        }
        self.staging.write(uploads)?;
        uploads.iter().for_each(|upload| self.device.count_write(upload.to, upload.bytes.len()));
        Ok(())
    }
}
