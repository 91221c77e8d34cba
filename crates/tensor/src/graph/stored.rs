//! Kernels over slices of any dtype.

use brisk_kernels::{DType, Kernel, stored};
use brisk_program::{Program, Slice};

use crate::error::Error;

/// Records the variant of `kernel` for the dtypes of the slices.
pub(crate) fn push(program: &mut Program, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
    let dtypes: Vec<DType> = args.iter().map(Slice::dtype).collect();
    if !dtypes.iter().any(|dtype| dtype.is_half()) {
        return Ok(program.push(kernel, args)?);
    }
    Ok(program.push(stored(kernel, &dtypes).map_err(brisk_program::Error::from)?, args)?)
}

/// The type to which the floating-point types among `dtypes` are promoted, as in PyTorch; f32 if there are none.
pub(crate) fn promoted(dtypes: impl IntoIterator<Item = DType>) -> DType {
    let floats = dtypes.into_iter().filter(|dtype| dtype.is_float());
    floats.reduce(|a, b| if a == b { a } else { DType::F32 }).unwrap_or(DType::F32)
}
