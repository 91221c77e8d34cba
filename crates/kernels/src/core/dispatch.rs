use crate::{Error, Module};

/// One WGSL dispatch of a kernel: source, constants, sizes, and which arguments it binds.
///
/// In group 0, binding 0 is a uniform struct of `params` (left out when `params` is
/// empty), then come the arguments of `reads` as `read`, then those of `writes` as `read_write`. A scratch argument is written by
/// one dispatch and read by the next; no argument may be on both lists of one dispatch.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// `crate.kernel`, as profilers show it.
    pub label: &'static str,
    /// The module.
    pub wgsl: Module,
    /// The entry point.
    pub entry: &'static str,
    /// Values of `override` constants.
    pub constants: Vec<(&'static str, f64)>,
    /// The uniform struct's bytes (std140-compatible: scalars and vec4s), a multiple of 16.
    pub params: Vec<u8>,
    /// What it reads, as indices into the kernel's argument list.
    pub reads: Vec<usize>,
    /// What it writes, likewise.
    pub writes: Vec<usize>,
    /// How many workgroups, in x, y, z.
    pub workgroups: [u32; 3],
}

/// The most workgroups a dispatch may have in one dimension on any adapter.
pub const MAX_WORKGROUPS: u32 = 65_535;

/// Folds `n` workgroups into x and y, for kernels whose index is `(workgroup.y * num_workgroups.x + workgroup.x) * WG + lane`.
///
/// # Errors
/// [`Error::Size`] if `n` is zero or beyond 65535².
pub fn fold_workgroups(kernel: &'static str, n: usize) -> Result<[u32; 3], Error> {
    let max = MAX_WORKGROUPS as usize;
    if n == 0 || n > max * max {
        return Err(Error::Size { kernel, size: "number of workgroups", found: n, expected: "1 to 65535 * 65535" });
    }
    let y = n.div_ceil(max);
    let x = n.div_ceil(y);
    Ok([x as u32, y as u32, 1])
}
