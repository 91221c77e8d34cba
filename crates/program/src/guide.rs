//! Guides: what the parts of this crate do together.

#[allow(unused_imports, reason = "links of the texts")]
use crate::*;

#[doc = include_str!("../docs/replays.md")]
pub mod replays {}

#[doc = include_str!("../docs/devices.md")]
pub mod devices {}

#[doc = include_str!("../docs/own_kernels.md")]
pub mod own_kernels {}

#[doc = include_str!("../docs/measurements.md")]
pub mod measurements {}
