use super::adam_cpu;
use crate::core::float::ln;
use crate::core::interval::check_settings;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Interval, Kernel, Param, STATE_LEN, TwinArgs};

/// One Adam or AdamW step over a flat buffer of parameters: all tensors of a model in one dispatch.
///
/// With `t = state.step - state.n_skipped + 1` and `lr = lr_table[min(state.batch, n_lr - 1)]`:
/// `m = β₁ m + (1 - β₁) g`, `v = β₂ v + (1 - β₂) g²`, `p -= lr / (1 - β₁ᵗ) · m / (√v / √(1 - β₂ᵗ) + ε)`.
/// While `state.skip` is not 0, nothing changes.
///
/// # Shapes
/// `grads`, `params`, `m`, `v`: `[n]`; `lr`: `[n_lr]`; `state`: [`STATE_LEN`].
/// # Dtypes
/// f32; `state` u32.
/// # Reference
/// Kingma & Ba 2015, arXiv:1412.6980; Loshchilov & Hutter 2019, arXiv:1711.05101; `torch.optim.{Adam, AdamW}`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adam {
    /// Parameters.
    pub n: usize,
    /// Entries of the learning-rate table.
    pub n_lr: usize,
    /// β₁, the decay of the mean of gradients.
    pub beta1: f32,
    /// β₂, the decay of the mean of their squares.
    pub beta2: f32,
    /// ε, added to the root.
    pub eps: f32,
    /// The weight decay.
    pub weight_decay: WeightDecay,
}

/// How the weight decay is applied.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum WeightDecay {
    /// `g += λ p`, as in Adam; 0 for none.
    Gradient(f32),
    /// `p -= lr λ p` in addition to the step, as in AdamW.
    Decoupled(f32),
}

impl Adam {
    /// PyTorch's defaults: β = (0.9, 0.999), ε = 1e-8, no decay.
    pub const fn new(n: usize, n_lr: usize) -> Self {
        Self { n, n_lr, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: WeightDecay::Gradient(0.0) }
    }

    /// The parameters of `adam_step.wgsl`.
    pub(crate) fn rates(&self) -> [(&'static str, Param); 5] {
        [
            ("beta1", self.beta1.into()),
            ("beta2", self.beta2.into()),
            ("ln_beta1", ln(self.beta1).into()),
            ("ln_beta2", ln(self.beta2).into()),
            ("eps", self.eps.into()),
        ]
    }
}

/// The arguments, with the names that `adam_step.wgsl` uses.
pub(crate) const ARGS_READ: [Binding; 3] = [Binding::of("grads"), Binding::of("lr").named("lr_table"), Binding::of("state")];
pub(crate) const ARGS_WRITTEN: [Binding; 3] = [Binding::of("params").named("values"), Binding::of("m"), Binding::of("v")];

impl Kernel for Adam {
    fn name(&self) -> &'static str {
        "adam"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("grads", DType::F32, self.n),
            Arg::read("lr", DType::F32, self.n_lr),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("params", DType::F32, self.n),
            Arg::read_write("m", DType::F32, self.n),
            Arg::read_write("v", DType::F32, self.n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        let (WeightDecay::Gradient(decay) | WeightDecay::Decoupled(decay)) = self.weight_decay;
        let settings = [
            ("beta1", self.beta1, Interval::BelowOne),
            ("beta2", self.beta2, Interval::BelowOne),
            ("eps", self.eps, Interval::NonNegative),
            ("weight_decay", decay, Interval::NonNegative),
        ];
        check_settings(self, &settings)?;
        check_sizes(self, &[("n", self.n), ("n_lr", self.n_lr)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (coupled, decoupled) = match self.weight_decay {
            WeightDecay::Gradient(decay) => (decay, 0.0),
            WeightDecay::Decoupled(decay) => (0.0, decay),
        };
        let module = module!("adam.wgsl", "adam_step.wgsl", "exp_neg.wgsl");
        let dispatch = Dispatch::elementwise(self.name(), "kernels.adam", module, self.n)?
            .params(self.rates())
            .param("coupled_decay", coupled)
            .param("decoupled_decay", decoupled);
        Ok(vec![dispatch.bind(&self.args(), ARGS_READ, ARGS_WRITTEN)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (grads, lr, state) = (args.read("grads"), args.read("lr"), args.read("state"));
        adam_cpu::run(self, grads, lr, state, args.write("params"), args.write("m"), args.write("v"));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: 15 * self.n as u64, bytes: 28 * self.n as u64 }
    }
}
