use crate::core::half::Floats;
use crate::expr::wgsl::{self, Lanes};
use crate::expr::{Activation, Expr};
use crate::{Arg, DType, Error, Len, Map, Part, TwinArgs};

/// An elementwise expression that a product or convolution applies to each sum while the sum is still in registers or cache.
///
/// Input 0 is the sum. Input 1, if there is one, is the element of a further argument: a row that is broadcast to all rows of the result, or a matrix of the
/// result's shape.
///
/// # Examples
/// ```
/// use brisk_kernels::expr::{Activation, Expr};
/// use brisk_kernels::{Epilogue, Kernel, Matmul, Transpose};
///
/// // A linear layer with GELU, and one whose result is scaled and added to a residual.
/// let layer = Epilogue::bias(&Activation::gelu());
/// let residual = Epilogue::with_matrix(Expr::input(0) * 0.5 + Expr::input(1));
/// let product = |epilogue| Matmul { m: 32, n: 10, k: 64, transpose: Transpose::B, epilogue };
/// assert_eq!(product(layer).args()[2].len, 10);
/// assert_eq!(product(residual).args()[2].len, 320);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Epilogue {
    expr: Expr,
    operand: Option<EpilogueOperand>,
}

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
    /// `y = p`.
    pub fn none() -> Self {
        Self::map(Expr::input(0))
    }

    /// `y = expr(p)`.
    pub const fn map(expr: Expr) -> Self {
        Self { expr, operand: None }
    }

    /// `y = expr(p, row)`, with `row: [n]` a further argument.
    pub const fn with_row(expr: Expr) -> Self {
        Self { expr, operand: Some(EpilogueOperand::Row) }
    }

    /// `y = expr(p, operand)`, with `operand: [m, n]` a further argument: the gradient through an activation, for example, by [`Activation::grad_from_output`]
    /// of its output, or by [`Activation::grad`] of its input.
    pub const fn with_matrix(expr: Expr) -> Self {
        Self { expr, operand: Some(EpilogueOperand::Matrix) }
    }

    /// `y = activation(p)`.
    pub fn activation(activation: &Activation) -> Self {
        Self::map(activation.forward.clone())
    }

    /// `y = activation(p + bias)`, with `bias: [n]` a further argument.
    pub fn bias(activation: &Activation) -> Self {
        Self::with_row(activation.forward.substitute(&[Expr::input(0) + Expr::input(1)]))
    }

    /// The expression of the sum, input 0, and of the further argument, input 1.
    pub const fn expr(&self) -> &Expr {
        &self.expr
    }

    /// The shape of the further argument, if there is one.
    pub const fn operand(&self) -> Option<EpilogueOperand> {
        self.operand
    }

    /// Whether sums are stored unchanged.
    pub fn is_none(&self) -> bool {
        self.operand.is_none() && self.expr == Expr::input(0)
    }

    /// The argument of input 1, for a result of `[m, n]`.
    pub(crate) fn arg(&self, m: usize, n: usize) -> Option<Arg> {
        let len = match self.operand? {
            EpilogueOperand::Row => n.into(),
            EpilogueOperand::Matrix => Len::from([m, n]),
        };
        Some(Arg::read(self.arg_name()?, DType::F32, len))
    }

    /// The name of the further argument.
    fn arg_name(&self) -> Option<&'static str> {
        Some(match self.operand? {
            EpilogueOperand::Row => "bias",
            EpilogueOperand::Matrix => "operand",
        })
    }

    /// The number of elements of the further argument; 0 if there is none.
    pub(crate) fn operand_of<'a>(&self, args: &TwinArgs<'a>) -> Floats<'a> {
        self.arg_name().map_or(Floats::F32(&[]), |name| Floats::of(args, name))
    }

    /// The number of arguments that it reads.
    pub(crate) const fn n_args(&self) -> usize {
        if self.operand.is_some() { 1 } else { 0 }
    }

    /// Whether the expression reads all of its inputs.
    pub(crate) fn check(&self, kernel: &'static str) -> Result<(), Error> {
        let n_inputs = 1 + self.n_args();
        if self.expr.n_inputs() <= n_inputs && (self.operand.is_none() || self.expr.reads(1)) {
            return Ok(());
        }
        let found = format!("the epilogue `{}` of {n_inputs} inputs", self.expr);
        Err(Error::Unsupported {
            kernel,
            found,
            expected: "an expression of the sum, x0, and of x1 if and only if there is a further argument",
        })
    }

    /// The epilogue that also computes `map`, whose input `input` is the result of this epilogue, if that is supported.
    pub(crate) fn followed_by(&self, map: &Map, input: usize) -> Option<Self> {
        let expr = map.as_plain()?;
        let (before, operand) = (self.expr.clone(), Expr::input(1));
        match (map.inputs.len(), self.operand) {
            (1, operand) => Some(Self { expr: expr.substitute(&[before]), operand }),
            (2, None) => {
                let inputs = if input == 0 { [before, operand] } else { [operand, before] };
                Some(Self::with_matrix(expr.substitute(&inputs)))
            }
            _ => None,
        }
    }

    /// Declares `finished`, which uses the group `FUSED` and the binding `fused` if there is a further argument.
    pub(crate) fn parts(&self, results: Results) -> Vec<Part> {
        let (lanes, at, at_type) = match results {
            Results::Four => (Lanes::Four, ["i", "col"], "u32"),
            Results::Two => (Lanes::Two, ["at", "cols"], "vec2u"),
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
        let text = format!("fn finished(sum: V, {i}: {at_type}, {col}: {at_type}) -> V {{ return epilogue(sum{operand}); }}\n");
        let finished = Part::own("finished", text);
        let functions = wgsl::functions(std::slice::from_ref(&self.expr));
        let epilogue = wgsl::function("epilogue", &self.expr, 1 + self.n_args());
        [lanes.part(), finished].into_iter().chain(functions).chain([epilogue]).collect()
    }
}

/// How a module passes the results that it finishes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Results {
    /// Four of a row as `vec4f`: `finished(sum: V, i: u32, col: u32) -> V`, where `i` is the index of their vector in the result, and `col` its index
    /// in the row.
    Four,
    /// Two as `vec2f`: `finished(sum: V, at: vec2u, cols: vec2u) -> V`, where `at` are their indices in the result, and `cols` their columns.
    Two,
}
