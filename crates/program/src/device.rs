//! Devices: how they are found and opened, their memory, and their executables.
//!
//! A software adapter is never a default: it runs the WGSL in tests, and twins are for CPUs.

pub(crate) mod adapters;
pub(crate) mod back_off;
pub(crate) mod builder;
pub(crate) mod counters;
#[expect(clippy::module_inception, reason = "the type that the folder is about")]
mod device;
pub(crate) mod executable;
mod last_write;
pub(crate) mod required;
mod roofline;
pub(crate) mod select;
pub(crate) mod uploads;

pub use device::Device;

use crate::device::adapters::open_adapters;
use crate::device::builder::DeviceBuilder;
use crate::device::executable::Executable;
use crate::device::select::Selection;
use crate::device::uploads::Uploads;
use crate::device_info::DeviceInfo;
use crate::error::Error;
use crate::profile::roofline::Roofline;
use crate::record::program::Program;

impl Device {
    /// Opens the device that `BRISK_DEVICE` selects (see [`Selection`]); if it is not set, a hardware GPU, else the CPU executor.
    ///
    /// A GPU that does not open is skipped, and [`DeviceInfo::fallback`] says why; one that was selected explicitly is an error.
    ///
    /// # Errors
    /// [`Error::NoDevice`] if `BRISK_DEVICE` names an unavailable device; [`Error::Open`].
    pub fn best() -> Result<Self, Error> {
        Self::builder().selection(Selection::from_env()).open()
    }

    /// The CPU executor, with one thread per core.
    ///
    /// # Errors
    /// [`Error::Open`] if the threads cannot be started.
    pub fn cpu() -> Result<Self, Error> {
        Self::builder().selection(Selection::Cpu).open()
    }

    /// Settings for a device.
    pub fn builder() -> DeviceBuilder {
        DeviceBuilder::default()
    }

    /// The available adapters, in the order of their indices. The CPU executor is always available and not listed.
    pub fn list() -> Vec<DeviceInfo> {
        open_adapters().into_iter().map(|(info, _)| info).collect()
    }

    /// Plans the program's memory, allocates it and creates everything that a replay needs.
    ///
    /// # Errors
    /// [`Error::ReadBeforeWrite`]; [`Error::Kernel`] for a kernel that the adapter cannot run, or whose WGSL it refuses;
    /// [`Error::SliceOffset`]; [`Error::MemoryLimit`], before anything is allocated; [`Error::BufferLimit`],
    /// [`Error::OutOfMemory`]; [`Error::DeviceFailed`]. On `Err` no transient memory is kept, and the device stays usable.
    pub fn compile(&self, program: &Program) -> Result<Executable, Error> {
        Executable::compile(self, program)
    }

    /// Staging memory for values that are written repeatedly: `n_slots` slots of `slot_bytes` each. With two slots the host can
    /// fill one while the device reads the other.
    ///
    /// # Errors
    /// [`Error::BufferLimit`], [`Error::OutOfMemory`] if there is not enough memory; [`Error::DeviceFailed`].
    pub fn uploads(&self, slot_bytes: usize, n_slots: usize) -> Result<Uploads, Error> {
        Uploads::new(self, slot_bytes, n_slots)
    }

    /// The peak performance of the device: measured on the first call, even if the device is also busy with other work, and kept.
    ///
    /// # Cost
    /// Some tenths of a second, and memory during that time: 512 MiB on a GPU, 64 MiB on the CPU, and less within a
    /// [`memory_limit`](DeviceBuilder::memory_limit).
    ///
    /// # Errors
    /// [`Error::MemoryLimit`] or [`Error::OutOfMemory`] if there is not enough memory even for small buffers;
    /// [`Error::DeviceFailed`].
    pub fn roofline(&self) -> Result<Roofline, Error> {
        if let Some(roofline) = self.inner.roofline.get() {
            return Ok(*roofline);
        }
        let measured = roofline::measure(self)?;
        Ok(*self.inner.roofline.get_or_init(|| measured))
    }
}
