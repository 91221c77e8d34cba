use super::rate_at_step_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, DType, Dispatch, Error, Kernel, STATE_LEN, TwinArgs};

/// The learning rate of a step, read from a table of all steps of a run: `rate[0] = table[min(state.step, n - 1)]`.
///
/// # Shapes
/// `table`: `[n]`; `state`: [`STATE_LEN`]; `rate`: `[1]`.
/// # Dtypes
/// f32; `state` u32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateAtStep {
    /// Entries of the table.
    pub n: usize,
}

impl Kernel for RateAtStep {
    fn name(&self) -> &'static str {
        "rate_at_step"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("table", DType::F32, self.n), Arg::read("state", DType::U32, STATE_LEN), Arg::write("rate", DType::F32, 1)]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let rate = Dispatch::elementwise(self.name(), "kernels.rate_at_step", module!("rate_at_step.wgsl"), 1)?;
        Ok(vec![rate.bind(&self.args(), ["table", "state"], ["rate"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        rate_at_step_cpu::run(args.read("table"), args.read("state"), args.write("rate"));
    }
}
