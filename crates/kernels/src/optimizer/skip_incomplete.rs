use super::skip_incomplete_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::run_state::STATE_LEN;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// Skips the step of a batch that does not complete a group, by `state.skip = 2`: its gradients are only added to a sum.
///
/// # Shapes
/// `state`: [`STATE_LEN`].
/// # Dtypes
/// u32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SkipIncomplete {
    /// Batches a step, at least 1; groups are counted from the epoch's first batch.
    pub every: u32,
    /// Batches of an epoch, the last of which ends a group; 0 for an epoch of unlimited length.
    pub n_batches: u32,
}

impl Kernel for SkipIncomplete {
    fn signature(&self) -> Signature {
        let args = [Arg::read_write("state", DType::U32, STATE_LEN)];
        Signature::new("skip_incomplete", args).sizes([("every", self.every as usize)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::new("kernels.skip_incomplete", module!("skip_incomplete.wgsl"), [1, 1, 1])
            .param("every", self.every)
            .param("n_batches", self.n_batches);
        Ok(vec![dispatch.bind(&self.args(), Binding::NONE, ["state"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        skip_incomplete_cpu::run(self, args.write("state"));
    }
}
