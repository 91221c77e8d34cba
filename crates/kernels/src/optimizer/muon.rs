use super::muon_cpu;
use crate::core::interval::check_settings;
use crate::core::module::module;
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Interval, Kernel, Momentum, Runs, STATE_LEN, TwinArgs};

/// The first half of a step of Muon: the running mean of gradients, and the update that is then orthogonalised, matrix by matrix.
///
/// `b += (1 - μ) (g - b)`; `u = g + μ (b - g)` with Nesterov, `u = b` without. While `state.skip` is not 0, the mean does not change.
///
/// # Shapes
/// `grads`, `momentum`: `[n]`; `state`: [`STATE_LEN`]; `update`: `[n_runs, len]`, the matrices of the ranges, concatenated.
/// # Dtypes
/// f32; `state` u32.
/// # Errors
/// [`Error::Size`] if ranges overlap or reach beyond the buffer; [`Error::Unsupported`] for a momentum that is not from 0 to below 1, and for
/// [`Momentum::FoldedNesterov`].
/// # Reference
/// Jordan et al. 2024, *Muon: An optimizer for hidden layers in neural networks*; `torch.optim.Muon`.
#[derive(Debug, Clone, PartialEq)]
pub struct MuonMomentum {
    /// The matrices.
    pub runs: Runs,
    /// μ.
    pub momentum: f32,
    /// Which form of momentum.
    pub form: Momentum,
}

impl Kernel for MuonMomentum {
    fn name(&self) -> &'static str {
        "muon_momentum"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("grads", DType::F32, self.runs.n),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("momentum", DType::F32, self.runs.n),
            Arg::write("update", DType::F32, self.runs.n_elements()),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_settings(self, &[("momentum", self.momentum, Interval::BelowOne)])?;
        if self.form == Momentum::FoldedNesterov {
            let expected = "`Momentum::Heavy` or `Momentum::Nesterov`: updates are orthogonalised before they are multiplied by the learning rate";
            return Err(Error::Unsupported { kernel: self.name(), found: format!("form = {:?}", self.form), expected });
        }
        self.runs.check(self)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let args = self.args();
        self.runs.dispatches(self.name(), "kernels.muon_momentum", &module!("muon_momentum.wgsl"), |dispatch| {
            dispatch
                .constants([("NESTEROV", f64::from(u8::from(self.form == Momentum::Nesterov)))])
                .param("momentum", self.momentum)
                .bind(&args, ["grads", "state"], ["momentum", "update"])
        })
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        muon_cpu::momentum(self, args.read("grads"), args.read("state"), args.write("momentum"), args.write("update"));
    }

    fn cost(&self) -> Cost {
        let n = self.runs.n_elements() as u64;
        Cost { flops: 6 * n, bytes: 16 * n }
    }
}

/// The second half of a step of Muon: subtracts the orthogonalised update from the parameters.
///
/// With `lr = lr_table[min(state.batch, n_lr - 1)]`: `p -= lr λ p + lr factor update`. While `state.skip` is not 0, nothing changes.
///
/// # Shapes
/// `update`: `[n_runs, len]`; `lr`: `[n_lr]`; `state`: [`STATE_LEN`]; `params`: `[n]`.
/// # Dtypes
/// f32; `state` u32.
/// # Errors
/// [`Error::Size`] if ranges overlap or reach beyond the buffer.
/// # Reference
/// As [`MuonMomentum`].
#[derive(Debug, Clone, PartialEq)]
pub struct MuonStep {
    /// The matrices.
    pub runs: Runs,
    /// Entries of the learning-rate table.
    pub n_lr: usize,
    /// The factor of the learning rate for the update, but not for the decay.
    pub factor: f32,
    /// λ.
    pub weight_decay: f32,
}

impl Kernel for MuonStep {
    fn name(&self) -> &'static str {
        "muon_step"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("update", DType::F32, self.runs.n_elements()),
            Arg::read("lr", DType::F32, self.n_lr),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("params", DType::F32, self.runs.n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        crate::core::sizes::check_sizes(self, &[("n_lr", self.n_lr)])?;
        let settings =
            [("factor", self.factor, Interval::NonNegative), ("weight_decay", self.weight_decay, Interval::NonNegative)];
        check_settings(self, &settings)?;
        self.runs.check(self)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let args = self.args();
        self.runs.dispatches(self.name(), "kernels.muon_step", &module!("muon_step.wgsl"), |dispatch| {
            let reads = [Binding::of("update"), Binding::of("lr").named("lr_table"), Binding::of("state")];
            let dispatch = dispatch.param("factor", self.factor).param("weight_decay", self.weight_decay);
            dispatch.bind(&args, reads, [Binding::of("params").named("values")])
        })
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        muon_cpu::step(self, args.read("update"), args.read("lr"), args.read("state"), args.write("params"));
    }

    fn cost(&self) -> Cost {
        let n = self.runs.n_elements() as u64;
        Cost { flops: 4 * n, bytes: 12 * n }
    }
}
