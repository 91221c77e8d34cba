use super::number::{Symbol, trace};
use super::rule::Rule;
use super::step_value::StepValue;
use super::{update_cpu, update_module};
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::expr::Expr;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::interval::check_settings;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::run_state::STATE_LEN;
use crate::shader::dispatch::Dispatch;

/// The number of parameters per entry of a table of groups: those of a group start and end at multiples of it, or next to
/// elements that are not updated.
pub const GROUP_LEN: usize = 64;

/// A [`Rule`] for each of `n` elements, in place: the step of an optimizer, a moving average, gradients that are summed.
///
/// # Shapes
/// `x0`, `x1`, … are the inputs of the rule, `[n]`, followed by `n0`, `n1`, … for each [`StepValue::Number`], `[1]`. Then
/// `table`, `[table_len]`, if the rule reads it, and `state`, [`STATE_LEN`]. With [groups](Self::grouped) `groups`,
/// `[⌈n / 64⌉, 2]`: for the [`GROUP_LEN`] elements starting at `64 i` the factor of their learning rate, and their weight decay,
/// which replaces that of the rule; if the factor is negative, these elements do not change. Then `y0`, `y1`, …, `[n]`, which are
/// replaced.
/// # Dtypes
/// f32; `state` u32.
/// # Errors
/// [`Error::Unsupported`] for a setting that the rule refuses, and for more than 8 arguments; [`Error::Size`] for 0 elements, an
/// empty table, and an interval of 0.
/// # Cost
/// One dispatch; reads each argument and writes those that are replaced once.
#[derive(Debug, Clone, PartialEq)]
pub struct Update<R, const V: usize, const I: usize, const O: usize> {
    name: &'static str,
    pub(super) rule: R,
    pub(super) n: usize,
    table_len: usize,
    pub(super) groups: Groups,
}

/// Whether rates and decays differ between parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Groups {
    None,
    Table,
}

const INPUTS: [&str; 8] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7"];
const NUMBERS: [&str; 8] = ["n0", "n1", "n2", "n3", "n4", "n5", "n6", "n7"];
const REPLACED: [&str; 8] = ["y0", "y1", "y2", "y3", "y4", "y5", "y6", "y7"];
/// Every adapter can bind this many buffers.
const MAX_ARGS: usize = 8;

impl<R: Rule<V, I, O>, const V: usize, const I: usize, const O: usize> Update<R, V, I, O> {
    /// The kernel `name`, which applies the rule to `n` elements.
    pub const fn new(name: &'static str, rule: R, n: usize) -> Self {
        Self { name, rule, n, table_len: 1, groups: Groups::None }
    }

    /// Sets the number of entries of the table, such as that of the learning rates; 1 by default.
    pub const fn table_len(mut self, table_len: usize) -> Self {
        self.table_len = table_len;
        self
    }

    /// Reads the learning rate and the weight decay from a table, for each [`GROUP_LEN`] elements.
    pub const fn grouped(mut self) -> Self {
        self.groups = Groups::Table;
        self
    }

    /// The names of the arguments of one number.
    pub(super) fn numbers(&self) -> impl Iterator<Item = &'static str> {
        let n_numbers = self.rule.values().iter().filter(|value| **value == StepValue::Number).count();
        NUMBERS.into_iter().take(n_numbers)
    }

    /// The names of the inputs and of the values that are replaced.
    pub(super) const fn names() -> (&'static [&'static str], &'static [&'static str]) {
        (INPUTS.split_at(if I < MAX_ARGS { I } else { MAX_ARGS }).0, REPLACED.split_at(if O < MAX_ARGS { O } else { MAX_ARGS }).0)
    }

    /// Whether the update takes place, as an expression of `state.skip` and the values of the step.
    pub(super) fn condition(&self) -> Expr {
        let [condition] = trace(|| {
            let skip = Symbol::input(0);
            [self.rule.takes_place(skip, std::array::from_fn(|i| Symbol::input(1 + i)))]
        });
        condition
    }

    /// The new values, as expressions of the values of the step, the inputs and the old values.
    pub(super) fn exprs(&self) -> [Expr; O] {
        trace(|| {
            let values = std::array::from_fn(Symbol::input);
            let inputs = std::array::from_fn(|i| Symbol::input(V + i));
            self.rule.update(values, inputs, std::array::from_fn(|i| Symbol::input(V + I + i)))
        })
    }

    pub(super) fn reads_table(&self) -> bool {
        self.rule.values().into_iter().any(StepValue::reads_table)
    }
}

impl<R: Rule<V, I, O>, const V: usize, const I: usize, const O: usize> Kernel for Update<R, V, I, O> {
    fn signature(&self) -> Signature {
        let (inputs, replaced) = Self::names();
        let mut args: Vec<Arg> = inputs.iter().map(|name| Arg::read(name, DType::F32, self.n)).collect();
        args.extend(self.numbers().map(|name| Arg::read(name, DType::F32, 1)));
        args.extend(self.reads_table().then(|| Arg::read("table", DType::F32, self.table_len)));
        args.push(Arg::read("state", DType::U32, STATE_LEN));
        let n_groups = self.n.div_ceil(GROUP_LEN);
        args.extend((self.groups == Groups::Table).then(|| Arg::read("groups", DType::F32, n_groups.saturating_mul(2))));
        args.extend(replaced.iter().map(|name| Arg::read_write(name, DType::F32, self.n)));
        Signature::new(self.name, args)
    }

    fn check(&self) -> Result<(), Error> {
        check_settings(self, &self.rule.settings())?;
        let every = self.rule.values().into_iter().map(|value| value.every() as usize).min().unwrap_or(1);
        check_sizes(self, &[("n", self.n), ("table_len", self.table_len), ("every", every)])?;
        let n_args = self.args().len();
        let found = || format!("an update with {n_args} arguments (replaced values: {O})");
        let is_bindable = O > 0 && I + O <= MAX_ARGS && n_args <= MAX_ARGS;
        check_supported(self.name, is_bindable, found, "at least one value, and at most 8 arguments")
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![update_module::dispatch(self)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        update_cpu::run(self, args);
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        (self.groups == Groups::None).then(|| Box::new(Self { n, ..self.clone() }) as Box<dyn Kernel>)
    }

    fn cost(&self) -> Cost {
        let n_ops: usize = self.exprs().iter().map(Expr::n_ops).sum();
        Cost { flops: (n_ops * self.n) as u64, bytes: (4 * (I + 2 * O) * self.n) as u64 }
    }
}
