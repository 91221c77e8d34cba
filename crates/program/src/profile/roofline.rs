use std::fmt;

/// The peak rates of a device, measured by [`Device::roofline`](crate::Device::roofline): no kernel moves bytes or computes
/// faster, unless its data stay in cache.
///
/// # Reference
/// Williams, Waterman & Patterson 2009, *Roofline: an insightful visual performance model for multicore architectures*.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Roofline {
    /// Bytes per second of a copy larger than any cache, counting both reads and writes.
    pub copy_bytes_per_s: f64,
    /// Operations per second of a large `f32` matrix product with this library's own kernel: a faster kernel raises the roofline.
    pub flops_per_s: f64,
}

impl fmt::Display for Roofline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it copies {:.1} GB/s and multiplies at {:.1} GFLOP/s", 1e-9 * self.copy_bytes_per_s, 1e-9 * self.flops_per_s)
    }
}
