use super::advance_cpu;
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

/// Advances the run by one batch: `state.batch += 1`, `state.step += 1`; if `state.skip` is not 0, `state.n_skipped += 1`,
/// `state.skip = 0`.
///
/// # Shapes
/// `state`: [`STATE_LEN`] u32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advance;

impl Kernel for Advance {
    fn signature(&self) -> Signature {
        Signature::new("advance", [Arg::read_write("state", DType::U32, STATE_LEN)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let advance = Dispatch::new("kernels.advance", module!("advance.wgsl"), [1, 1, 1]);
        Ok(vec![advance.bind(&self.args(), Binding::NONE, ["state"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        advance_cpu::run(args.write("state"));
    }
}
