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

/// Returns an error of `kernel` for a size and its value, unless it is valid.
pub(crate) fn check_size(
    kernel: &'static str,
    (size, found): (&'static str, usize),
    is_valid: bool,
    expected: &'static str,
) -> Result<(), Error> {
    if is_valid { Ok(()) } else { Err(Error::Size { kernel, size, found, expected }) }
}

/// Checks that each of `sizes`, and each argument's number of elements, fits the u32 indices of the WGSL.
pub(crate) fn check_indices(kernel: &'static str, args: &[Arg], sizes: &[(&'static str, usize)]) -> Result<(), Error> {
    let max = u32::MAX as usize;
    sizes.iter().try_for_each(|&(size, n)| check_size(kernel, (size, n), n > 0 && n <= max, "1 to 2^32 - 1"))?;
    args.iter().try_for_each(|arg| check_size(kernel, (arg.name, arg.len), arg.len <= max, "at most 2^32 - 1 elements"))
}
