//! Sizes and indices as WGSL has them, in 32 bits.

use crate::arg::Arg;
use crate::error::Error;

/// A size as the `u32` that WGSL and `wgpu` use for counts; `u32::MAX` for larger ones, which checks have refused before.
pub(crate) const fn in_u32(size: usize) -> u32 {
    if size > u32::MAX as usize {
        return u32::MAX;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is not larger")]
    let in_u32 = size as u32;
    in_u32
}

/// Checks that each of `sizes`, and each argument's number of elements, fits the u32 indices of the WGSL.
pub(crate) fn check_indices(kernel: &'static str, args: &[Arg], sizes: &[(&'static str, usize)]) -> Result<(), Error> {
    let max = u32::MAX as usize;
    for &(size, found) in sizes {
        if found == 0 || found > max {
            return Err(Error::Size { kernel, size, found, expected: "1 to 2^32 - 1" });
        }
    }
    match args.iter().find(|arg| arg.len > max) {
        None => Ok(()),
        Some(arg) => Err(Error::Size { kernel, size: arg.name, found: arg.len, expected: "at most 2^32 - 1 elements" }),
    }
}
