use super::elementwise_cpu;
use crate::core::half::Floats;
use crate::core::module::part;
use crate::core::sizes::check_sizes;
use crate::core::stored_form::{StoredForm, with_element};
use crate::core::stored_types::{Group, Template};
use crate::{Activation, Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

const ELEMENTWISE: Template = Template::new(
    &[part!("elementwise.wgsl"), part!("functions.wgsl")],
    &[
        Group::lane("X").loads(),
        Group::lane("A").loads(),
        Group::lane("B").loads(),
        Group::lane("C").loads(),
        Group::lane("Y").loads().stores(),
    ],
);

/// A chain of steps done to each element while it is in a register: `y = stepₖ(… step₁(x))`. What several elementwise kernels one after
/// the other would compute, to the bit on the CPU, and in one pass over memory.
///
/// The arguments are `x`, then an operand for each step that [takes one](ElementwiseStep::takes_operand), in the order of the steps, then `y`.
///
/// # Shapes
/// `x`, each operand, `y`: `[n]`.
/// # Dtypes
/// f32; of any of them f16 and bf16 by [`stored`](crate::stored), each step being taken in f32.
/// # Errors
/// [`Error::Unsupported`] for no steps or more than [`MAX_STEPS`](Self::MAX_STEPS), more operands than [`MAX_OPERANDS`](Self::MAX_OPERANDS), and
/// [`ElementwiseStep::OutputGrad`] of an activation whose derivative needs its input.
/// # Examples
/// ```
/// use brisk_kernels::{Activation, Elementwise, ElementwiseStep, Kernel};
///
/// let residual = Elementwise { n: 64, steps: vec![ElementwiseStep::Add, ElementwiseStep::Activate(Activation::Relu)] };
/// let names: Vec<_> = residual.args().iter().map(|arg| arg.name).collect();
/// assert_eq!(names, ["x", "operand0", "y"]);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Elementwise {
    /// Elements.
    pub n: usize,
    /// What is done, in order.
    pub steps: Vec<ElementwiseStep>,
}

/// One step of an [`Elementwise`] chain: what becomes of `v`, with `o` from an operand.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum ElementwiseStep {
    /// `act(v)`, as [`Activate`](crate::Activate).
    Activate(Activation),
    /// `v + o`, as [`Add`](crate::Add).
    Add,
    /// `v o`, as [`Multiply`](crate::Multiply).
    Multiply,
    /// `v act'(o)`, `o` being the input of the activation, as [`ActivationGrad`](crate::ActivationGrad).
    ActivationGrad(Activation),
    /// `v act'`, the derivative taken from the output `o`, as [`OutputGrad`](crate::OutputGrad).
    OutputGrad(Activation),
}

impl ElementwiseStep {
    /// Whether it reads a further argument.
    pub const fn takes_operand(self) -> bool {
        !matches!(self, Self::Activate(_))
    }

    /// Whether `v` and `o` may change places.
    pub const fn is_symmetric(self) -> bool {
        matches!(self, Self::Add | Self::Multiply)
    }

    const fn code(self) -> u32 {
        match self {
            Self::Activate(_) => 1,
            Self::Add => 2,
            Self::Multiply => 3,
            Self::ActivationGrad(_) => 4,
            Self::OutputGrad(_) => 5,
        }
    }

    const fn activation(self) -> Activation {
        match self {
            Self::Activate(act) | Self::ActivationGrad(act) | Self::OutputGrad(act) => act,
            Self::Add | Self::Multiply => Activation::Identity,
        }
    }
}

/// The constants of each step: what, which activation, its α, which operand.
const CONSTANTS: [[&str; 4]; Elementwise::MAX_STEPS] = [
    ["STEP0", "ACTIVATION0", "ALPHA0", "OPERAND0"],
    ["STEP1", "ACTIVATION1", "ALPHA1", "OPERAND1"],
    ["STEP2", "ACTIVATION2", "ALPHA2", "OPERAND2"],
    ["STEP3", "ACTIVATION3", "ALPHA3", "OPERAND3"],
];
const OPERANDS: [&str; Elementwise::MAX_OPERANDS] = ["operand0", "operand1", "operand2"];

impl Elementwise {
    /// The most steps of a chain.
    pub const MAX_STEPS: usize = 4;
    /// The most operands of a chain: with `x` and `y` they leave room within the eight buffers that every adapter binds.
    pub const MAX_OPERANDS: usize = 3;

    fn n_operands(&self) -> usize {
        self.steps.iter().filter(|step| step.takes_operand()).count()
    }
}

impl Kernel for Elementwise {
    fn name(&self) -> &'static str {
        "elementwise"
    }

    fn args(&self) -> Vec<Arg> {
        let operands = OPERANDS.into_iter().take(self.n_operands());
        let reads = std::iter::once("x").chain(operands).map(|name| Arg::read(name, DType::F32, self.n));
        reads.chain(std::iter::once(Arg::write("y", DType::F32, self.n))).collect()
    }

    fn check(&self) -> Result<(), Error> {
        let (n_steps, n_operands) = (self.steps.len(), self.n_operands());
        if n_steps == 0 || n_steps > Self::MAX_STEPS || n_operands > Self::MAX_OPERANDS {
            let found = format!("a chain of {n_steps} steps with {n_operands} operands");
            return Err(Error::Unsupported {
                kernel: self.name(),
                found,
                expected: "1 to 4 steps, of which up to 3 take an operand",
            });
        }
        let from_output = self.steps.iter().filter(|step| matches!(step, ElementwiseStep::OutputGrad(_)));
        from_output.map(|step| step.activation()).try_for_each(|act| act.check_grad_from_output(self.name()))?;
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let n_operands = self.n_operands();
        let operands: Vec<&[f32]> = (1..=n_operands).map(|arg| args.read(arg)).collect();
        elementwise_cpu::run(&self.steps, args.read(0), &operands, args.write(1 + n_operands));
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(self.clone())
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, steps: self.steps.clone() }))
    }

    fn cost(&self) -> Cost {
        let n = self.n as u64;
        Cost { flops: n * self.steps.len() as u64, bytes: 4 * n * (2 + self.n_operands() as u64) }
    }
}

/// The same chain over one buffer, whose values it starts from and ends in: what a program makes of a chain whose `x` nobody needs afterwards.
///
/// # Shapes
/// Operands, one for each step that [takes one](ElementwiseStep::takes_operand), and `y`: `[n]`.
/// # Dtypes
/// f32.
/// # Errors
/// As [`Elementwise`]; [`Error::Unsupported`] for a chain without operands.
#[derive(Debug, Clone, PartialEq)]
pub struct ElementwiseInPlace {
    /// The chain.
    pub chain: Elementwise,
}

impl Kernel for ElementwiseInPlace {
    fn name(&self) -> &'static str {
        "elementwise_in_place"
    }

    fn args(&self) -> Vec<Arg> {
        let n = self.chain.n;
        let operands = OPERANDS.into_iter().take(self.chain.n_operands()).map(|name| Arg::read(name, DType::F32, n));
        operands.chain(std::iter::once(Arg::read_write("y", DType::F32, n))).collect()
    }

    fn check(&self) -> Result<(), Error> {
        if self.chain.n_operands() == 0 {
            let found = "a chain without operands".to_owned();
            return Err(Error::Unsupported { kernel: self.name(), found, expected: "a step that takes one" });
        }
        self.chain.check()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let n_operands = self.chain.n_operands();
        // The first operand stands in for `x` and for those that are not.
        let operand = |i| if i < n_operands { i } else { 0 };
        let reads: Vec<usize> = std::iter::once(0).chain((0..Elementwise::MAX_OPERANDS).map(operand)).collect();
        let dispatches = self.chain.dispatches(adapter)?.into_iter();
        let in_place = |dispatch| Dispatch { entry: "in_place", reads: reads.clone(), writes: vec![n_operands], ..dispatch };
        Ok(dispatches.map(in_place).collect())
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let n_operands = self.chain.n_operands();
        let operands: Vec<&[f32]> = (0..n_operands).map(|arg| args.read(arg)).collect();
        elementwise_cpu::run_in_place(&self.chain.steps, &operands, args.write(n_operands));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { chain: Elementwise { n, steps: self.chain.steps.clone() } }))
    }

    fn cost(&self) -> Cost {
        self.chain.cost()
    }
}

impl StoredForm for Elementwise {
    /// Invocations take two elements, which only 16 bits have padding for.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let fits = self.n.is_multiple_of(2) || dtypes.iter().all(|dtype| dtype.is_half());
        fits.then(|| dtypes.to_vec())
    }

    /// No types at all are f32.
    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let mut constants = Vec::with_capacity(4 * self.steps.len());
        let mut operand = 0;
        for (step, [kind, activation, alpha, which]) in self.steps.iter().zip(CONSTANTS) {
            constants.push((kind, f64::from(step.code())));
            constants.push((activation, f64::from(step.activation().code())));
            constants.push((alpha, f64::from(step.activation().alpha())));
            constants.push((which, f64::from(operand)));
            operand += u32::from(step.takes_operand());
        }
        // The WGSL has a binding for each operand there may be; `x` stands in for those that are not.
        let n_operands = self.n_operands();
        let reads: Vec<usize> = (0..=Self::MAX_OPERANDS).map(|arg| if arg <= n_operands { arg } else { 0 }).collect();
        let stored = reads.iter().copied().chain([1 + n_operands]).map_while(|arg| dtypes.get(arg).copied());
        let groups = ["X", "A", "B", "C", "Y"].into_iter();
        let n_lanes = if dtypes.is_empty() { self.n } else { self.n.div_ceil(2) };
        Ok(vec![Dispatch {
            label: "kernels.elementwise",
            wgsl: ELEMENTWISE.module(&groups.zip(stored).collect::<Vec<_>>()),
            entry: "main",
            constants,
            params: vec![],
            reads,
            writes: vec![1 + n_operands],
            workgroups: fold_workgroups(self.name(), n_lanes.div_ceil(64))?,
        }])
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        let y = dtypes.len() - 1;
        let reads: Vec<Floats<'_>> = (0..y).map(|arg| Floats::of(args, arg, dtypes[arg])).collect();
        with_element!(dtypes[y], Y => elementwise_cpu::run_stored::<Y>(&self.steps, &reads, args.write(y)));
    }
}
