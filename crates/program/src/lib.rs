#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod error;
mod persistent;
mod program;

mod plan;

mod device;
mod executable;
mod select;

mod memory;

mod bytes;
mod cpu;

mod adapters;
mod gpu;
mod gpu_uploads;
mod transfer;
mod uploads;

pub use device::{Device, DeviceBuilder, DeviceInfo, DeviceKind};
pub use error::Error;
pub use executable::Executable;
pub use persistent::Persistent;
pub use plan::{Plan, planned_peak_bytes};
pub use program::{Program, Slice};
pub use select::Selection;
pub use uploads::{Upload, Uploads};

pub use brisk_kernels as kernels;
