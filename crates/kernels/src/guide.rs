//! Guides: what the parts of this crate do together.

#[allow(unused_imports, reason = "links of the texts")]
use crate::*;

#[doc = include_str!("../docs/gpu.md")]
pub mod gpu {}

#[doc = include_str!("../docs/own_kernels.md")]
pub mod own_kernels {}

#[doc = include_str!("../docs/measurements.md")]
pub mod measurements {}
