use super::lookahead_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Kernel, STATE_LEN, TwinArgs};

/// Slow weights in addition to the weights that an optimizer updates: after every `every`-th step `slow = d slow + (1 - d) weights`, and the weights are set to
/// `slow`. One kernel before the optimizer copies the weights before the first step, one after it does the rest.
///
/// `d` is the entry of `decays` for the update, or the last entry for all later updates. While `state.skip` is not 0, nothing changes; skipped steps do not count.
/// After step number `end` of the run the weights are set to the slow ones, even if that step is skipped or is not an `every`-th step.
///
/// # Shapes
/// `decays`: `[n_decays]`; `weights`, `slow`: `[n]`; `state`: [`STATE_LEN`].
/// # Dtypes
/// f32; `state` u32.
/// # Reference
/// Zhang et al. 2019, *Lookahead Optimizer: k steps forward, 1 step back*, arXiv:1907.08610, with `d = 1 - α`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lookahead {
    /// Weights.
    pub n: usize,
    /// Steps between two updates, at least 1.
    pub every: u32,
    /// Entries of the table of decays.
    pub n_decays: usize,
    /// The number of steps of the run, including skipped ones; `None` if the weights are not set to the slow ones at the end of the run.
    pub end: Option<u32>,
    /// Which of the two kernels.
    pub phase: LookaheadPhase,
}

/// The position of a [`Lookahead`] kernel in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookaheadPhase {
    /// Before the optimizer.
    Start,
    /// After it.
    End,
}

impl Kernel for Lookahead {
    fn name(&self) -> &'static str {
        "lookahead"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("decays", DType::F32, self.n_decays),
            Arg::read("state", DType::U32, STATE_LEN),
            Arg::read_write("weights", DType::F32, self.n),
            Arg::read_write("slow", DType::F32, self.n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        let end = self.end.unwrap_or(u32::MAX) as usize;
        check_sizes(self, &[("n", self.n), ("every", self.every as usize), ("n_decays", self.n_decays), ("end", end)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let dispatch = Dispatch::elementwise(self.name(), "kernels.lookahead", module!("lookahead.wgsl"), self.n)?
            .param("every", self.every)
            .param("end", self.end.unwrap_or(0))
            .param("is_start", u32::from(self.phase == LookaheadPhase::Start));
        let writes = [Binding::of("weights").named("values"), Binding::of("slow")];
        Ok(vec![dispatch.bind(&self.args(), ["decays", "state"], writes)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        lookahead_cpu::run(self, args.read("decays"), args.read("state"), args.write("weights"), args.write("slow"));
    }

    fn cost(&self) -> Cost {
        Cost { flops: 3 * self.n as u64, bytes: 16 * self.n as u64 }
    }
}
