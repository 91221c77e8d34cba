use std::fmt;

use super::prepared::Prepared;
use crate::arg::{Arg, Len};
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::expr::wgsl::{self, VectorWidth};
use crate::expr::{Activation, Expr};
use crate::kernel::floats::Floats;
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::random::draws::{DRAWS, Draws};
use crate::run_state::STATE_LEN;
use crate::shader::binding::Binding;
use crate::shader::module::Part;

/// An elementwise expression that a product or convolution applies to each sum while the sum is still in registers or cache.
///
/// Input 0 is the sum. Input 1, if there is one, is the element of a further argument: a row that is broadcast to all rows of the
/// result, or a matrix of the result's shape. The last input may be a [random number](Draws), whose index is that of the element
/// in the result, as in dropout.
///
/// # Examples
/// ```
/// use brisk_kernels::expr::{Activation, Expr};
/// use brisk_kernels::{Epilogue, Kernel, Matmul, Transpose};
///
/// // A linear layer with GELU, and one whose result is scaled and added to a residual.
/// let layer = Epilogue::bias(&Activation::gelu());
/// let residual = Epilogue::with_matrix(Expr::input(0) * 0.5 + Expr::input(1));
/// let product = |epilogue| Matmul { n_batch: 1, m: 32, n: 10, k: 64, transpose: Transpose::B, epilogue };
/// assert_eq!(product(layer).args()[2].len, 10);
/// assert_eq!(product(residual).args()[2].len, 320);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Epilogue {
    expr: Expr,
    operand: Option<EpilogueOperand>,
    draws: Option<Draws>,
    pub(super) prepared: Prepared,
}

impl fmt::Debug for Epilogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { expr, operand, draws, .. } = self;
        f.debug_struct("Epilogue").field("expr", expr).field("operand", operand).field("draws", draws).finish()
    }
}

/// The seeds of random numbers and the index of the first, as constants of a module.
const DRAWS_CONSTANTS: [&str; 3] = ["DRAWS_SEED_A", "DRAWS_SEED_B", "DRAWS_FIRST"];

/// The shape of an epilogue's further argument, for a result of `[m, n]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EpilogueOperand {
    /// `[n]`, as a bias.
    Row,
    /// `[m, n]`, as a residual, or as the output of an activation whose gradient is computed.
    Matrix,
}

impl Default for Epilogue {
    fn default() -> Self {
        Self::none()
    }
}

impl Epilogue {
    const fn new(expr: Expr, operand: Option<EpilogueOperand>, draws: Option<Draws>) -> Self {
        Self { expr, operand, draws, prepared: Prepared::new() }
    }

    /// `y = p`.
    pub fn none() -> Self {
        Self::map(Expr::input(0))
    }

    /// `y = expr(p)`.
    pub const fn map(expr: Expr) -> Self {
        Self::new(expr, None, None)
    }

    /// `y = expr(p, row)`, with `row: [n]` a further argument.
    pub const fn with_row(expr: Expr) -> Self {
        Self::new(expr, Some(EpilogueOperand::Row), None)
    }

    /// `y = expr(p, operand)`, with `operand: [m, n]` a further argument: the gradient through an activation, for example, by
    /// [`Activation::grad_from_output`] of its output, or by [`Activation::grad`] of its input.
    pub const fn with_matrix(expr: Expr) -> Self {
        Self::new(expr, Some(EpilogueOperand::Matrix), None)
    }

    /// `y = activation(p)`.
    pub fn activation(activation: &Activation) -> Self {
        Self::map(activation.forward.clone())
    }

    /// `y = activation(p + bias)`, with `bias: [n]` a further argument.
    pub fn bias(activation: &Activation) -> Self {
        Self::with_row(activation.forward.substitute(&[Expr::input(0) + Expr::input(1)]))
    }

    /// Adds random numbers as a further input of the expression, after the others. It then reads the state of the run.
    pub fn with_draws(self, draws: Draws) -> Self {
        Self::new(self.expr, self.operand, Some(draws))
    }

    /// The expression of the sum, input 0, of the further argument, and of the random number.
    pub const fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The shape of the further argument, if there is one.
    pub const fn operand(&self) -> Option<EpilogueOperand> {
        self.operand
    }

    /// The random numbers, if there are any.
    pub const fn draws(&self) -> Option<Draws> {
        self.draws
    }

    /// Whether sums are stored unchanged.
    pub fn is_none(&self) -> bool {
        self.n_args() == 0 && self.expr == Expr::input(0)
    }

    /// The arguments that it reads, for a result of `[m, n]`: the further one, then the state of the run.
    pub(crate) fn args(&self, m: usize, n: usize) -> impl Iterator<Item = Arg> + use<> {
        let operand = self.operand.zip(self.operand_name()).map(|(operand, name)| {
            let len = match operand {
                EpilogueOperand::Row => n.into(),
                EpilogueOperand::Matrix => Len::from([m, n]),
            };
            Arg::read(name, DType::F32, len)
        });
        operand.into_iter().chain(self.draws.map(|_| Arg::read("state", DType::U32, STATE_LEN)))
    }

    /// How a dispatch binds these arguments, which follow two operands in the list of the kernel.
    pub(crate) fn bindings(&self) -> impl Iterator<Item = Binding> + use<> {
        let operand = self.operand.map(|_| Binding::at(2).named("fused"));
        operand.into_iter().chain(self.draws.map(|_| Binding::of("state")))
    }

    /// The group of the further argument in a module, and how it is stored, given the arguments of the kernel.
    pub(crate) fn stored_operand(&self, args: &[Arg]) -> Option<(&'static str, DType)> {
        self.operand.map(|_| ("FUSED", args[2].dtype))
    }

    /// Values of the constants that [`parts`](Self::parts) declares.
    pub(crate) fn constants(&self) -> impl Iterator<Item = (&'static str, f64)> + use<> {
        let values = self.draws.map(|draws| {
            let [a, b] = draws.seeds();
            DRAWS_CONSTANTS.into_iter().zip([a, b, draws.first].map(f64::from))
        });
        values.into_iter().flatten()
    }

    /// The name of the further argument.
    fn operand_name(&self) -> Option<&'static str> {
        Some(match self.operand? {
            EpilogueOperand::Row => "bias",
            EpilogueOperand::Matrix => "operand",
        })
    }

    /// The number of elements of the further argument; 0 if there is none.
    pub(crate) fn operand_of<'a>(&self, args: &TwinArgs<'a>) -> Floats<'a> {
        self.operand_name().map_or(Floats::F32(&[]), |name| Floats::of(args, name))
    }

    /// The number of arguments that it reads.
    pub(crate) const fn n_args(&self) -> usize {
        self.operand.is_some() as usize + self.draws.is_some() as usize
    }

    /// Whether the expression reads all of its inputs.
    pub(crate) fn check(&self, kernel: &'static str) -> Result<(), Error> {
        let n_inputs = 1 + self.n_args();
        let reads_all = self.expr.n_inputs() <= n_inputs && (1..n_inputs).all(|input| self.expr.reads(input));
        let found = || format!("the epilogue `{}` (number of inputs: {n_inputs})", self.expr);
        check_supported(kernel, reads_all, found, "an expression of the sum, x0, and of all further inputs")
    }

    /// The epilogue that also computes `map`, whose input `input` is the result of this epilogue, if that is supported. It reads
    /// the arguments of this epilogue and the other inputs of the map, the state of the run last.
    pub(crate) fn followed_by(&self, map: &Map, input: usize) -> Option<Self> {
        let expr = map.as_plain()?;
        let (mut operand, mut draws) = (self.operand, self.draws);
        let others = map.inputs.iter().enumerate().filter(|(i, _)| *i != input).map(|(_, other)| other.draws);
        for other in others {
            match other {
                Some(_) if draws.is_none() => draws = other,
                None if operand.is_none() => operand = Some(EpilogueOperand::Matrix),
                _ => return None,
            }
        }
        // The number follows the further argument, which may be new.
        let (argument, number) = (Expr::input(1), Expr::input(1 + usize::from(operand.is_some())));
        let own = if self.operand.is_some() { &argument } else { &number };
        let result = self.expr.substitute(&[Expr::input(0), own.clone(), number.clone()]);
        let inputs: Vec<Expr> = (map.inputs.iter().enumerate())
            .map(|(i, other)| match other.draws {
                _ if i == input => result.clone(),
                Some(_) => number.clone(),
                None => argument.clone(),
            })
            .collect();
        Some(Self::new(expr.substitute(&inputs), operand, draws))
    }

    /// Declares `finished`, which uses the group `FUSED` and the binding `fused` if there is a further argument, and the binding
    /// `state` for random numbers.
    pub(crate) fn parts(&self, results: Results) -> Vec<Part> {
        let (width, at, at_type) = match results {
            Results::Four => (VectorWidth::Four, ["i", "col"], "u32"),
            Results::Two => (VectorWidth::Two, ["at", "cols"], "vec2u"),
        };
        let place = self.operand.map(|operand| match operand {
            EpilogueOperand::Row => at[1],
            EpilogueOperand::Matrix => at[0],
        });
        let operand = place.map_or_else(String::new, |place| match results {
            Results::Four => format!(", load_fused(fused[{place}])"),
            Results::Two => format!(", vec2f(load_fused({place}.x), load_fused({place}.y))"),
        });
        let [i, col] = at;
        let number = self.draws.map_or_else(String::new, |_| {
            let [a, b, first] = DRAWS_CONSTANTS;
            let index = match results {
                Results::Four => "4u * i + U(0u, 1u, 2u, 3u)",
                Results::Two => "at",
            };
            format!(", draw({first} + {index}, {a}, {b}, state[1])")
        });
        let constants = self.constants().map(|(name, _)| format!("override {name}: u32;\n")).collect::<String>();
        let text = format!(
            "{constants}fn finished(sum: V, {i}: {at_type}, {col}: {at_type}) -> V {{ return epilogue(sum{operand}{number}); }}\n"
        );
        let finished = Part::own("finished", text);
        let functions = wgsl::functions(std::slice::from_ref(&self.expr));
        let epilogue = wgsl::function("epilogue", &self.expr, 1 + self.n_args());
        [width.part(), finished].into_iter().chain(self.draws.map(|_| DRAWS)).chain(functions).chain([epilogue]).collect()
    }
}

/// How a module passes the results that it finishes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Results {
    /// Four of a row as `vec4f`: `finished(sum: V, i: u32, col: u32) -> V`, where `i` is the index of their vector in the result,
    /// and `col` its index in the row.
    Four,
    /// Two as `vec2f`: `finished(sum: V, at: vec2u, cols: vec2u) -> V`, where `at` are their indices in the result, and `cols`
    /// their columns.
    Two,
}
