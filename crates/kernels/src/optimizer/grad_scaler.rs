use super::grad_scaler_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::run_state::STATE_LEN;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// Elements of a `scaler` buffer (u32): `verdict, n_good, n_skipped_in_a_row, n_skipped`.
///
/// `verdict` is the result of [`Unscale`] since the last update: 0 if nothing was unscaled, 1 if all gradients were finite, 2 if
/// one was not. `n_good` is the number of consecutive updates with finite gradients since the scale last changed,
/// `n_skipped_in_a_row` that of consecutive skipped steps, and `n_skipped` that of all skipped steps.
pub const SCALER_LEN: usize = 4;

/// Divides gradients by the loss scale, `g *= 1 / scale`, and skips the step if one is not finite: `state.skip = 1`,
/// `scaler.verdict = 2`. All gradients are divided, even if some are infinite or NaN. If no step is due (`state.skip` is 2),
/// nothing changes.
///
/// PyTorch checks the gradients before they are divided, this kernel afterwards: the step is also skipped if a quotient
/// overflows. A scale that is not a normal number (0, subnormal, infinite, NaN) always skips the step, and leaves the gradients
/// unchanged.
///
/// # Shapes
/// `scale`: `[1]`; `grads`: `[n]`; `scaler`: [`SCALER_LEN`]; `state`: [`STATE_LEN`].
/// # Dtypes
/// f32; `scaler` and `state` u32.
/// # Reference
/// `torch.amp.GradScaler.unscale_`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unscale {
    /// Gradients.
    pub n: usize,
}

impl Kernel for Unscale {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("scale", DType::F32, 1),
            Arg::read_write("grads", DType::F32, self.n),
            Arg::read_write("scaler", DType::U32, SCALER_LEN),
            Arg::read_write("state", DType::U32, STATE_LEN),
        ];
        Signature::new("unscale", args).sizes([("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::elementwise(self.name(), "kernels.unscale", module!("grad_scaler_unscale.wgsl"), self.n)?;
        let flags = ["scaler", "state"].map(|name| Binding::of(name).elements("atomic<u32>"));
        Ok(vec![dispatch.bind(&self.args(), ["scale"], [Binding::of("grads"), flags[0], flags[1]])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        grad_scaler_cpu::unscale(args.read::<f32>("scale")[0], args.write("grads"), args.write("scaler"), args.write("state"));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 8 * self.n as u64 }
    }
}

/// The loss scale after a step. If a gradient was not finite, `scale *= backoff_factor` and the count of good steps is reset;
/// else, after `growth_interval` good steps in a row, `scale *= growth_factor`, unless that is infinite, and the count is reset.
/// If nothing was unscaled, nothing changes.
///
/// The scale has no lower limit: halved often enough, it becomes 0. Results are bit-identical on both executors, including those
/// for subnormal scales.
///
/// With factors that are powers of two, such as the default ones, the scale is bit-identical to PyTorch's. PyTorch multiplies by
/// other factors in f64; this kernel rounds them to f32, so that a normal scale differs from PyTorch's by a factor of at most 1 ±
/// 3 · 2⁻²⁴ per update.
///
/// # Shapes
/// `scale`: `[1]`; `scaler`: [`SCALER_LEN`], whose `verdict` is 0 afterwards.
/// # Dtypes
/// f32; `scaler` u32.
/// # Reference
/// `torch._amp_update_scale_`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct UpdateScale {
    /// The factor by which the scale grows.
    pub growth_factor: f64,
    /// The factor by which it shrinks.
    pub backoff_factor: f64,
    /// The number of good steps after which it grows.
    pub growth_interval: u32,
}

impl Default for UpdateScale {
    /// PyTorch's: 2, 0.5, 2000.
    fn default() -> Self {
        Self { growth_factor: 2.0, backoff_factor: 0.5, growth_interval: 2000 }
    }
}

impl Kernel for UpdateScale {
    fn signature(&self) -> Signature {
        let args = [Arg::read_write("scale", DType::F32, 1), Arg::read_write("scaler", DType::U32, SCALER_LEN)];
        Signature::new("update_scale", args)
    }

    fn check(&self) -> Result<(), Error> {
        let Self { growth_factor, backoff_factor, growth_interval } = *self;
        let check = |is_valid, found, expected| check_supported(self.name(), is_valid, || found, expected);
        check(growth_factor > 1.0 && growth_factor.is_finite(), format!("growth_factor = {growth_factor}"), "more than 1")?;
        let is_fraction = backoff_factor > 0.0 && backoff_factor < 1.0;
        check(is_fraction, format!("backoff_factor = {backoff_factor}"), "between 0 and 1")?;
        check(growth_interval > 0, format!("growth_interval = {growth_interval}"), "at least 1")
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let [(growth, growth_exponent), (backoff, backoff_exponent)] =
            [self.growth_factor, self.backoff_factor].map(grad_scaler_cpu::mantissa_and_exponent);
        let dispatch = Dispatch::new("kernels.update_scale", module!("grad_scaler_update.wgsl"), [1, 1, 1])
            .param("growth_mantissa", growth)
            .param("growth_exponent", growth_exponent)
            .param("backoff_mantissa", backoff)
            .param("backoff_exponent", backoff_exponent)
            .param("growth_interval", self.growth_interval);
        let writes = [Binding::of("scale").elements("u32"), Binding::of("scaler")];
        Ok(vec![dispatch.bind(&self.args(), Binding::NONE, writes)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        grad_scaler_cpu::update(self, args.write("scale"), args.write("scaler"));
    }
}
