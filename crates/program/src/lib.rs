#![doc = include_str!("../README.md")]

mod error;
mod host_step;
mod persistent;
mod program;

mod cut;
mod in_place;
mod layout;
mod plan;
mod recompute;
mod renew;
mod rewrite;

mod device;
mod device_builder;
mod executable;
mod profile;
mod roofline;
mod select;

mod back_off;
mod memory;

mod bytes;
mod cpu;

mod adapters;
mod failure;
mod gpu;
mod gpu_host;
mod gpu_profile;
mod gpu_uploads;
mod pipeline_cache;
mod transfer;
mod uploads;

pub use device::{Device, DeviceInfo, DeviceKind};
pub use device_builder::DeviceBuilder;
pub use error::{Error, HostFailure};
pub use executable::Executable;
pub use host_step::{HostArgs, HostStep};
pub use persistent::Persistent;
pub use pipeline_cache::PipelineCache;
pub use plan::{Plan, planned_peak_bytes};
pub use profile::{KernelProfile, Profile, Timer};
pub use program::{Program, Slice};
pub use recompute::Segment;
pub use rewrite::Rewrite;
pub use roofline::Roofline;
pub use select::Selection;
pub use uploads::{Upload, Uploads};

pub use brisk_kernels as kernels;
