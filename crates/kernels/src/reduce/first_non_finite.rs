use super::first_non_finite_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;
use crate::sizes::check_size;

/// Records the first of many values that is not finite, each of which a [`MapReduce`](crate::MapReduce) with
/// [`Reducer::NonFinite`](crate::Reducer::NonFinite) checks. Once a place has been recorded, it is kept.
///
/// # Shapes
/// `found`: `[1]`, more than 0 if a value is not finite; `first`: [`FIRST_NON_FINITE_LEN`].
/// # Dtypes
/// `found` f32; `first` u32: the place plus 1, or 0 if nothing was found; how often place 0 was passed before that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FirstNonFinite {
    /// The number of this place: 0 for the first of a replay, which counts replays.
    pub place: u32,
}

/// Elements of the `first` of a [`FirstNonFinite`].
pub const FIRST_NON_FINITE_LEN: usize = 2;

impl Kernel for FirstNonFinite {
    fn signature(&self) -> Signature {
        let args = [Arg::read("found", DType::F32, 1), Arg::read_write("first", DType::U32, FIRST_NON_FINITE_LEN)];
        Signature::new("first_non_finite", args)
    }

    fn check(&self) -> Result<(), Error> {
        check_size(self.name(), ("place", self.place as usize), self.place < u32::MAX, "less than 2^32 - 1")
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::new("kernels.first_non_finite", module!("first_non_finite.wgsl"), [1, 1, 1]);
        Ok(vec![dispatch.param("place", self.place).bind(&self.args(), ["found"], ["first"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        first_non_finite_cpu::run(self.place, args.read::<f32>("found")[0], args.write("first"));
    }
}
