use super::{adam, parameter_groups_cpu, sgd};
use crate::core::module::module;
use crate::{Adam, Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Kernel, Sgd, TwinArgs, WeightDecay};

/// The number of parameters per entry of a table of groups: those of a group start and end at multiples of it, or next to elements that are not
/// updated.
pub const GROUP_LEN: usize = 64;

/// A step of [`Sgd`] whose learning rate and weight decay differ between parameters, still in one dispatch.
///
/// `groups[i]` is for the [`GROUP_LEN`] parameters starting at `64 i`: the factor of their learning rate, and their weight decay, which replaces that of the
/// kernel. If the factor is negative, parameters and momentum do not change.
///
/// # Shapes
/// `groups`: `[⌈n / 64⌉, 2]`; then as [`Sgd`].
/// # Dtypes
/// f32; `state` u32.
/// # Reference
/// The `param_groups` of `torch.optim.SGD`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SgdGroups {
    /// The step.
    pub sgd: Sgd,
}

const GROUPS: Binding = Binding::of("groups").named("groups_of").elements("vec2f");

impl Kernel for SgdGroups {
    fn name(&self) -> &'static str {
        "sgd_groups"
    }

    fn args(&self) -> Vec<Arg> {
        with_groups(self.sgd.n, self.sgd.args())
    }

    fn check(&self) -> Result<(), Error> {
        self.sgd.check()
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let Sgd { momentum, form, .. } = self.sgd;
        let module = module!("parameter_groups_sgd.wgsl", "sgd_step.wgsl");
        let dispatch = Dispatch::elementwise(self.name(), "kernels.sgd_groups", module, self.sgd.n)?
            .param("momentum", momentum)
            .param("form", form.word());
        Ok(vec![dispatch.bind(&self.args(), [&[GROUPS], &sgd::ARGS_READ[..]].concat(), sgd::ARGS_WRITTEN)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (groups, grads, lr, state) = (args.read("groups"), args.read("grads"), args.read("lr"), args.read("state"));
        parameter_groups_cpu::sgd(&self.sgd, groups, grads, lr, state, args.write("params"), args.write("momentum"));
    }

    fn cost(&self) -> Cost {
        self.sgd.cost()
    }
}

/// A step of [`Adam`] whose learning rate and weight decay differ between parameters, still in one dispatch.
///
/// As [`SgdGroups`]; the kernel of the step determines whether the decay is added to the gradient or decoupled.
///
/// # Shapes
/// `groups`: `[⌈n / 64⌉, 2]`; then as [`Adam`].
/// # Dtypes
/// f32; `state` u32.
/// # Reference
/// The `param_groups` of `torch.optim.{Adam, AdamW}`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AdamGroups {
    /// The step.
    pub adam: Adam,
}

impl Kernel for AdamGroups {
    fn name(&self) -> &'static str {
        "adam_groups"
    }

    fn args(&self) -> Vec<Arg> {
        with_groups(self.adam.n, self.adam.args())
    }

    fn check(&self) -> Result<(), Error> {
        self.adam.check()
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let is_decoupled = u32::from(matches!(self.adam.weight_decay, WeightDecay::Decoupled(_)));
        let module = module!("parameter_groups_adam.wgsl", "adam_step.wgsl", "exp_neg.wgsl");
        let dispatch = Dispatch::elementwise(self.name(), "kernels.adam_groups", module, self.adam.n)?
            .params(self.adam.rates())
            .param("is_decoupled", is_decoupled);
        Ok(vec![dispatch.bind(&self.args(), [&[GROUPS], &adam::ARGS_READ[..]].concat(), adam::ARGS_WRITTEN)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (groups, grads, lr, state) = (args.read("groups"), args.read("grads"), args.read("lr"), args.read("state"));
        parameter_groups_cpu::adam(&self.adam, groups, grads, lr, state, args.write("params"), args.write("m"), args.write("v"));
    }

    fn cost(&self) -> Cost {
        self.adam.cost()
    }
}

fn with_groups(n: usize, args: Vec<Arg>) -> Vec<Arg> {
    std::iter::once(Arg::read("groups", DType::F32, 2 * n.div_ceil(GROUP_LEN))).chain(args).collect()
}
