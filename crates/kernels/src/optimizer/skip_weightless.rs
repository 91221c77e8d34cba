use super::skip_weightless_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::run_state::STATE_LEN;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// Skips the step of a group of batches whose rows all have weight 0, by `state.skip = 2`, since such a group has no gradients.
/// It must come before [`Unscale`](crate::Unscale), which then leaves the loss scale unchanged.
///
/// `sum` collects `weight`, the sum of the weights of a batch, over the batches of a group. Groups are those of
/// [`SkipIncomplete`](crate::SkipIncomplete).
///
/// # Shapes
/// `weight`, `sum`: `[1]`; `state`: [`STATE_LEN`].
/// # Dtypes
/// f32; `state` u32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkipWeightless {
    /// Batches a step, at least 1; groups are counted from the epoch's first batch.
    pub every: u32,
    /// Batches of an epoch, the last of which ends a group; 0 for an epoch of unlimited length.
    pub n_batches: u32,
}

impl Kernel for SkipWeightless {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("weight", DType::F32, 1),
            Arg::read_write("sum", DType::F32, 1),
            Arg::read_write("state", DType::U32, STATE_LEN),
        ];
        Signature::new("skip_weightless", args).sizes([("every", self.every as usize)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::new("kernels.skip_weightless", module!("skip_weightless.wgsl"), [1, 1, 1])
            .param("every", self.every)
            .param("n_batches", self.n_batches);
        Ok(vec![dispatch.bind(&self.args(), ["weight"], ["sum", "state"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        skip_weightless_cpu::run(self, args.read::<f32>("weight")[0], args.write("sum"), args.write("state"));
    }
}
