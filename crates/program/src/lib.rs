#![doc = include_str!("../README.md")]

mod bytes;
mod cpu;
mod device;
mod error;
mod executable;
mod gpu;
mod persistent;
mod plan;
mod program;
mod select;

pub use device::{Device, DeviceBuilder, DeviceInfo, DeviceKind};
pub use error::Error;
pub use executable::Executable;
pub use persistent::Persistent;
pub use plan::{Plan, planned_peak_bytes};
pub use program::{Program, Slice};
pub use select::Selection;

pub use brisk_kernels as kernels;
