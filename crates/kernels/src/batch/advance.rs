use super::advance_cpu;
use crate::batch::order::STATE_LEN;
use crate::core::access::Arg;
use crate::core::adapter::Adapter;
use crate::core::binding::Binding;
use crate::core::dispatch::Dispatch;
use crate::core::dtype::DType;
use crate::core::error::Error;
use crate::core::kernel::Kernel;
use crate::core::module::module;
use crate::core::twin::TwinArgs;

/// Advances the run by one batch: `state.batch += 1`, `state.step += 1`; if `state.skip` is not 0, `state.n_skipped += 1`, `state.skip = 0`.
///
/// # Shapes
/// `state`: [`STATE_LEN`] u32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advance;

impl Kernel for Advance {
    fn name(&self) -> &'static str {
        "advance"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read_write("state", DType::U32, STATE_LEN)]
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let advance = Dispatch::new("kernels.advance", module!("advance.wgsl"), [1, 1, 1]);
        Ok(vec![advance.bind(&self.args(), Binding::NONE, ["state"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        advance_cpu::run(args.write("state"));
    }
}
