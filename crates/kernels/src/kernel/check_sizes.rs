use crate::error::Error;
use crate::kernel::kernel::Kernel;
use crate::sizes::check_indices;

/// Checks that each of `sizes`, and each argument's number of elements, fits the u32 indices of the WGSL.
pub(crate) fn check_sizes(kernel: &dyn Kernel, sizes: &[(&'static str, usize)]) -> Result<(), Error> {
    check_indices(kernel.name(), &kernel.args(), sizes)
}
