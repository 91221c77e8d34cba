use super::ema_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Kernel, STATE_LEN, TwinArgs};

/// An exponential moving average of parameters: `average = decay average + (1 - decay) params`, all tensors of a model in one dispatch.
///
/// It is taken after every `every`th step, counted by `state.step - state.n_skipped`; the first time the parameters are copied. While
/// `state.skip` is not 0, nothing changes.
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
    /// How much of the average stays, 0 to 1.
    pub decay: f32,
    /// Steps between two updates of it, at least 1.
    pub every: u32,
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
        if !(0.0..=1.0).contains(&self.decay) {
            let found = format!("decay = {}", self.decay);
            return Err(Error::Unsupported { kernel: self.name(), found, expected: "0 <= decay <= 1" });
        }
        check_sizes(self, &[("n", self.n), ("every", self.every as usize)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::elementwise(self.name(), "kernels.ema", module!("ema.wgsl"), self.n)?
            .param("decay", self.decay)
            .param("every", self.every);
        let reads = [Binding::of("params").named("values"), Binding::of("state")];
        Ok(vec![dispatch.bind(&self.args(), reads, ["average"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        ema_cpu::run(self, args.read(0), args.read(1), args.write(2));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: 3 * self.n as u64, bytes: 12 * self.n as u64 }
    }
}
