use super::ema_cpu;
use crate::core::interval::check_settings;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Interval, Kernel, STATE_LEN, TwinArgs};

/// An exponential moving average of parameters: `average = decay average + (1 - decay) params`, all tensors of a model in one dispatch.
///
/// It is updated on step `first_step`, counted from 1 by `state.step - state.n_skipped`, and then on every `every`-th step. While `state.skip` is not 0,
/// nothing changes.
///
/// # Shapes
/// `params`, `average`: `[n]`; `state`: [`STATE_LEN`], with the numbers of steps before this one.
/// # Dtypes
/// f32; `state` u32.
/// # Reference
/// `torch.optim.swa_utils.AveragedModel` with `get_ema_avg_fn`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ema {
    /// Parameters.
    pub n: usize,
    /// The fraction of the average that an update keeps, 0 to 1.
    pub decay: f32,
    /// Steps between two updates, at least 1.
    pub every: u32,
    /// The step of the first update, at least 1.
    pub first_step: u32,
    /// The value of the average before its first update.
    pub start: EmaStart,
}

/// What an [exponential moving average](Ema) starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum EmaStart {
    /// The parameters: they are copied on each step up to and including the first update, as in `torch.optim.swa_utils`.
    #[default]
    Parameters,
    /// The values written to the average before the run, such as the initial parameters.
    Given,
}

impl Kernel for Ema {
    fn name(&self) -> &'static str {
        "ema"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("params", DType::F32, self.n),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("average", DType::F32, self.n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_settings(self, &[("decay", self.decay, Interval::Unit)])?;
        check_sizes(self, &[("n", self.n), ("every", self.every as usize), ("first_step", self.first_step as usize)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::elementwise(self.name(), "kernels.ema", module!("ema.wgsl"), self.n)?
            .param("decay", self.decay)
            .param("every", self.every)
            .param("first_step", self.first_step)
            .param("copies", u32::from(self.start == EmaStart::Parameters));
        let reads = [Binding::of("params").named("values"), Binding::of("state")];
        Ok(vec![dispatch.bind(&self.args(), reads, ["average"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        ema_cpu::run(self, args.read("params"), args.read("state"), args.write("average"));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: 3 * self.n as u64, bytes: 12 * self.n as u64 }
    }
}
