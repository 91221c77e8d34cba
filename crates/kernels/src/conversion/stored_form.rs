use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::converted::{Converted, stored};
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::dispatch::Dispatch;

/// A kernel that has a specialised form for floats stored in 16 bits, which [`Kernel::stored_as`] returns as [`Stored`]. Its twin
/// checks the [types](TwinArgs::dtype) of its arguments.
pub(crate) trait StoredForm: Kernel + Clone {
    /// The supported types that are closest to these, with f32 where it is required; the other arguments are converted.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>>;

    /// As [`Kernel::args`].
    fn stored_args(&self, dtypes: &[DType]) -> Vec<Arg> {
        let mut args = self.args();
        args.iter_mut().zip(dtypes).for_each(|(arg, dtype)| arg.dtype = *dtype);
        args
    }

    /// As [`Kernel::dispatches`].
    fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error>;

    /// The implementation of [`Kernel::dispatches`].
    fn own_dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dtypes: Vec<DType> = self.args().iter().map(|arg| arg.dtype).collect();
        self.stored_dispatches(&dtypes, adapter)
    }

    /// The implementation of [`Kernel::stored_as`].
    fn stored_form(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        let nearest = self.nearest(dtypes)?;
        let is_all = nearest == dtypes;
        let form = Box::new(Stored { kernel: self.clone(), dtypes: nearest });
        Some(if is_all { form } else { Box::new(Converted { kernel: form, dtypes: dtypes.to_vec() }) })
    }
}

/// The methods of a [`Kernel`] that follow from its [`StoredForm`].
macro_rules! by_stored_form {
    () => {
        fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
            self.own_dispatches(adapter)
        }

        fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
            self.stored_form(dtypes)
        }
    };
}
pub(crate) use by_stored_form;

/// A kernel in its form for floats stored as `dtypes` says, one type for each argument except scratch.
#[derive(Debug)]
pub(crate) struct Stored<K> {
    kernel: K,
    dtypes: Vec<DType>,
}

impl<K: StoredForm> Kernel for Stored<K> {
    fn signature(&self) -> Signature {
        Signature::new(self.kernel.name(), self.kernel.stored_args(&self.dtypes))
    }

    fn check(&self) -> Result<(), Error> {
        self.kernel.check()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.kernel.stored_dispatches(&self.dtypes, adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.kernel.twin(args);
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        stored(self.kernel.with_len(n)?, &self.dtypes).ok()
    }

    fn cost(&self) -> Cost {
        let Cost { flops, bytes } = self.kernel.cost();
        let of_f32 = self.kernel.args();
        let saved = of_f32.iter().zip(&self.dtypes).map(|(arg, dtype)| arg.len * (arg.dtype.size_bytes() - dtype.size_bytes()));
        Cost { flops, bytes: bytes.saturating_sub(saved.sum::<usize>() as u64) }
    }
}

/// For a form in which the arguments `which` share a 16-bit type, and all others have their own types: those types, if they do.
pub(crate) fn sharing(kernel: &impl Kernel, which: &[usize], dtypes: &[DType]) -> Option<Vec<DType>> {
    let shared = dtypes[*which.first()?];
    if !shared.is_half() || which.iter().any(|&i| dtypes[i] != shared) {
        return None;
    }
    let args = kernel.args();
    Some((0..dtypes.len()).map(|i| if which.contains(&i) { shared } else { args[i].dtype }).collect())
}
