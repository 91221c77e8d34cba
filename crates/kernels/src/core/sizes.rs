use crate::{Error, Kernel};

/// Whether each of `sizes`, and each argument's number of elements, fits the u32 indices of the WGSL.
pub(crate) fn check_sizes(kernel: &impl Kernel, sizes: &[(&'static str, usize)]) -> Result<(), Error> {
    let max = u32::MAX as usize;
    for &(size, found) in sizes {
        if found == 0 || found > max {
            return Err(Error::Size { kernel: kernel.name(), size, found, expected: "1 to 2^32 - 1" });
        }
    }
    match kernel.args().iter().find(|arg| arg.len > max) {
        None => Ok(()),
        Some(arg) => {
            Err(Error::Size { kernel: kernel.name(), size: arg.name, found: arg.len, expected: "at most 2^32 - 1 elements" })
        }
    }
}
