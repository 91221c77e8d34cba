use super::sgd_cpu;
use crate::core::interval::check_settings;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Interval, Kernel, STATE_LEN, TwinArgs};

/// One step of stochastic gradient descent with momentum over a flat buffer of parameters.
///
/// With `lr = lr_table[min(state.batch, n_lr - 1)]`: `g += λ p`, `u = μ u + g`, `p -= lr (g + μ u)` with Nesterov, `p -= lr u` without;
/// with the rate folded in, `u = μ u - lr g`, `p += μ u - lr g`. While `state.skip` is not 0, nothing changes.
///
/// # Shapes
/// `grads`, `params`, `momentum`: `[n]`; `lr`: `[n_lr]`; `state`: [`STATE_LEN`].
/// # Dtypes
/// f32; `state` u32.
/// # Reference
/// Sutskever et al. 2013; `torch.optim.SGD` with dampening 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sgd {
    /// Parameters.
    pub n: usize,
    /// Entries of the learning-rate table.
    pub n_lr: usize,
    /// μ.
    pub momentum: f32,
    /// λ, added to the gradient times the parameter.
    pub weight_decay: f32,
    /// Which form of momentum.
    pub form: Momentum,
}

/// Which form of momentum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Momentum {
    /// The step is the accumulated momentum.
    #[default]
    Heavy,
    /// Nesterov momentum: the step is the gradient plus μ times the accumulated momentum.
    Nesterov,
    /// Nesterov momentum with the learning rate in the accumulated sum, which is a velocity. It differs from the other form while the rate changes: earlier gradients keep
    /// the rate of their step. As in Page 2018, *How to train your ResNet*, and in the paper. [`MuonMomentum`](crate::MuonMomentum) refuses it, because it does not
    /// read the learning rate.
    FoldedNesterov,
}

impl Momentum {
    /// The number that stands for it in the shader.
    pub(crate) fn word(self) -> u32 {
        match self {
            Self::Heavy => 0,
            Self::Nesterov => 1,
            Self::FoldedNesterov => 2,
        }
    }
}

/// The arguments, with the names that `sgd_step.wgsl` uses.
pub(crate) const ARGS_READ: [Binding; 3] = [Binding::of("grads"), Binding::of("lr").named("lr_table"), Binding::of("state")];
pub(crate) const ARGS_WRITTEN: [Binding; 2] = [Binding::of("params").named("values"), Binding::of("momentum")];

impl Kernel for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("grads", DType::F32, self.n),
            Arg::read("lr", DType::F32, self.n_lr),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("params", DType::F32, self.n),
            Arg::read_write("momentum", DType::F32, self.n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        let settings =
            [("momentum", self.momentum, Interval::BelowOne), ("weight_decay", self.weight_decay, Interval::NonNegative)];
        check_settings(self, &settings)?;
        check_sizes(self, &[("n", self.n), ("n_lr", self.n_lr)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::elementwise(self.name(), "kernels.sgd", module!("sgd.wgsl", "sgd_step.wgsl"), self.n)?
            .param("momentum", self.momentum)
            .param("weight_decay", self.weight_decay)
            .param("form", self.form.word());
        Ok(vec![dispatch.bind(&self.args(), ARGS_READ, ARGS_WRITTEN)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        sgd_cpu::run(self, args.read("grads"), args.read("lr"), args.read("state"), args.write("params"), args.write("momentum"));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: 6 * self.n as u64, bytes: 20 * self.n as u64 }
    }
}
