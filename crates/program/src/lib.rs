#![doc = include_str!("../README.md")]

mod error;
mod record;

mod plan;
mod rewrite;

mod device_info;
mod memory;
mod profile;

mod cpu;
mod executor;
mod gpu;

mod device;

#[cfg(any(doc, doctest))]
pub mod guide;

pub use device::Device;
pub use device::builder::DeviceBuilder;
pub use device::counters::Counters;
pub use device::executable::Executable;
pub use device::select::Selection;
pub use device::uploads::Uploads;
pub use device_info::{DeviceInfo, DeviceKind};
pub use error::{Error, HostFailure};
pub use gpu::pipeline_cache::PipelineCache;
pub use plan::{Plan, planned_peak_bytes};
pub use profile::roofline::Roofline;
pub use profile::{KernelProfile, Profile, Timer};
pub use record::host_step::{HostArgs, HostStep};
pub use record::persistent::Persistent;
pub use record::program::{Program, Slice};
pub use record::upload::Upload;
pub use rewrite::Rewrite;
pub use rewrite::recompute::RecomputedSegment;

pub use brisk_kernels as kernels;
