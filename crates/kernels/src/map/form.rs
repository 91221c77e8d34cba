//! Elementwise expressions that have loops of their own on the CPU, without an evaluator: activations, their derivatives,
//! dropout. Results are bit-identical to those of an [`Evaluator`](crate::expr::Evaluator).

use std::hint::black_box;
use std::sync::LazyLock;

use crate::expr::{Activation, Expr, SHORT_BLOCK_LEN, Unary, apply, scale_by_gelu_slope};
use crate::map::map::Map;
use crate::random::draws_cpu::Drawn;
use crate::sizes::in_u32;
use crate::vectorised::inlined;

/// An expression of a value, an element of a further argument if there is one, and a random number if there is one.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Form {
    /// Adds the row, if there is one, then applies the function.
    Forward(Function),
    /// The same, then dropout: 0 with this probability, else multiplied by this.
    Dropout(Function, f32, f32),
    /// Multiplies the value by the derivative that follows from the matrix, which is an output of the function.
    Gradient(Function),
    /// The same for a matrix and a value that are both to be scaled: that of an activation before dropout, whose output was
    /// divided by the share that is kept. The value is multiplied by this, the matrix divided by it.
    ScaledGradient(Function, f32),
    /// Multiplies the value by the derivative of GELU, whose argument is the matrix.
    GeluGradient,
}

/// The further argument of a [`Form`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Further {
    None,
    /// An element for each column.
    Row,
    /// An element for each value.
    Matrix,
}

/// Functions with specialised loops.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Function {
    Identity,
    Relu,
    Celu { alpha: f32 },
    Sigmoid,
    Tanh,
}

/// Those without a constant.
const FUNCTIONS: [Function; 4] = [Function::Identity, Function::Relu, Function::Sigmoid, Function::Tanh];

impl Function {
    fn activation(self) -> Activation {
        match self {
            Self::Identity => Activation::identity(),
            Self::Relu => Activation::relu(),
            Self::Celu { alpha } => Activation::celu(alpha),
            Self::Sigmoid => Activation::sigmoid(),
            Self::Tanh => Activation::tanh(),
        }
    }

    /// The function whose expression in this form equals `expr`. The constants of an expression are the candidates for CELU's α.
    fn find(expr: &Expr, form: fn(&Forms) -> &Expr) -> Option<Self> {
        static KNOWN: LazyLock<[Forms; 4]> = LazyLock::new(|| FUNCTIONS.map(Forms::of));
        if let Some(forms) = KNOWN.iter().find(|forms| form(forms) == expr) {
            return Some(forms.function);
        }
        let alphas = expr.constants().chain([1.0]).filter(|alpha| *alpha > 0.0);
        alphas.map(|alpha| Self::Celu { alpha }).find(|celu| form(&Forms::of(*celu)) == expr)
    }

    /// The function whose expression in this form, followed by dropout by random number `drawn`, equals `expr`; the probability
    /// and the scale of dropout.
    fn find_dropout(expr: &Expr, drawn: usize, form: fn(&Forms) -> &Expr) -> Option<(Self, f32, f32)> {
        let drawn = Expr::input(drawn);
        expr.constants().filter(|p| (0.0..1.0).contains(p)).find_map(|p| {
            let of = |function: &Self| Map::dropout_of(form(&Forms::of(*function)), &drawn, p) == *expr;
            Some((FUNCTIONS.into_iter().find(of)?, p, Map::dropout_scale(p)))
        })
    }

    /// The function and the scale whose gradient, [scaled](Form::ScaledGradient), equals `expr`.
    fn find_scaled(expr: &Expr) -> Option<(Self, f32)> {
        let [grad, y] = [0, 1].map(Expr::input);
        let of = |function, scale| Forms::of(function).gradient.substitute(&[&grad * scale, &y / scale]);
        expr.constants().find_map(|scale| Some((FUNCTIONS.into_iter().find(|&function| of(function, scale) == *expr)?, scale)))
    }
}

/// The epilogues of a function.
struct Forms {
    function: Function,
    plain: Expr,
    biased: Expr,
    gradient: Expr,
}

impl Forms {
    fn of(function: Function) -> Self {
        let activation = function.activation();
        let gradient = activation.grad_from_output().expect("the derivatives of these follow from the output");
        let biased = activation.forward.substitute(&[Expr::input(0) + Expr::input(1)]);
        Self { function, plain: activation.forward, biased, gradient }
    }
}

impl Form {
    /// Leaves values unchanged.
    pub(crate) const NONE: Self = Self::Forward(Function::Identity);

    /// The form of an expression; `None` for those without one.
    pub(crate) fn of(expr: &Expr, further: Further, has_draws: bool) -> Option<Self> {
        let dropout = |(function, p, scale)| Self::Dropout(function, p, scale);
        match (further, has_draws) {
            (Further::None, false) => Function::find(expr, |forms| &forms.plain).map(Self::Forward),
            (Further::Row, false) => Function::find(expr, |forms| &forms.biased).map(Self::Forward),
            (Further::None, true) => Function::find_dropout(expr, 1, |forms| &forms.plain).map(dropout),
            (Further::Row, true) => Function::find_dropout(expr, 2, |forms| &forms.biased).map(dropout),
            (Further::Matrix, false) if *expr == Activation::gelu().grad() => Some(Self::GeluGradient),
            (Further::Matrix, false) => Function::find(expr, |forms| &forms.gradient)
                .map(Self::Gradient)
                .or_else(|| Function::find_scaled(expr).map(|(function, scale)| Self::ScaledGradient(function, scale))),
            (Further::Matrix, true) => None,
        }
    }

    /// Whether [`run`](Self::run) takes less time than an [`Evaluator`](crate::expr::Evaluator) for long slices. It does not
    /// where it needs several loops itself.
    pub(crate) const fn is_faster_than_evaluator(self) -> bool {
        match self {
            Self::Forward(function) | Self::ScaledGradient(function, _) => {
                matches!(function, Function::Identity | Function::Relu)
            }
            Self::Dropout(..) | Self::Gradient(_) | Self::GeluGradient => true,
        }
    }

    /// Replaces the values `y`, of which the first has number `at` among those that are drawn for: `further` is empty if there is
    /// no further argument, else a row for as many values as it has, again and again, or a matrix.
    #[inline(always)]
    pub(crate) fn run(self, further: &[f32], drawn: Option<Drawn>, at: usize, y: &mut [f32]) {
        match self {
            Self::Forward(function) => run_forward(function, further, y),
            Self::Dropout(function, p, scale) => {
                run_forward(function, further, y);
                if let Some(drawn) = drawn {
                    drawn.drop_out(p, scale, in_u32(at), y);
                }
            }
            Self::Gradient(function) => scale_by_slope(function, further, y, |y| y, |grad| grad),
            Self::ScaledGradient(function, scale) => scale_by_scaled_slope(function, scale, further, y),
            Self::GeluGradient => scale_by_gelu_slope(further, y),
        }
    }
}

/// Adds the row, if there is one, then applies the function.
#[inline(always)]
fn run_forward(function: Function, row: &[f32], y: &mut [f32]) {
    if !row.is_empty() {
        for y in y.chunks_exact_mut(row.len()) {
            for (y, bias) in y.iter_mut().zip(row) {
                *y += bias;
            }
        }
    }
    activate(function, y);
}

#[inline(always)]
fn activate(function: Function, y: &mut [f32]) {
    match function {
        Function::Identity => {}
        Function::Relu => update(y, inlined!(|y| if y <= 0.0 { 0.0 } else { y })),
        Function::Celu { alpha } => celu(y, alpha),
        Function::Sigmoid => apply(Unary::Sigmoid, y),
        Function::Tanh => apply(Unary::Tanh, y),
    }
}

fn celu(y: &mut [f32], alpha: f32) {
    let mut below = [0.0; SHORT_BLOCK_LEN];
    for y in y.chunks_mut(SHORT_BLOCK_LEN) {
        let below = &mut below[..y.len()];
        below.iter_mut().zip(&*y).for_each(|(below, y)| *below = y * (1.0 / alpha));
        apply(Unary::Expm1, below);
        update2(y, below, inlined!(|y, below| if y <= 0.0 { below * alpha } else { y }));
    }
}

/// [`scale_by_slope`] for an output before dropout: `y` is divided by `scale`, and the gradient multiplied by it.
#[inline(always)]
fn scale_by_scaled_slope(function: Function, scale: f32, y: &[f32], grad_x: &mut [f32]) {
    // To ReLU only the sign of the quotient matters, which spares the division. Quotients of at most half the smallest number are
    // rounded to 0.
    if function == Function::Relu {
        let rounded_to_zero = (scale / 2.0).floor() * f32::from_bits(1);
        return update2(grad_x, y, inlined!(|grad_x, y| if y <= rounded_to_zero { 0.0 } else { grad_x * scale }));
    }
    scale_by_slope(function, y, grad_x, |y| y / scale, |grad_x| grad_x * scale);
}

/// `grad_x *= act'`, where the derivative is computed from the output `y`, both mapped before.
#[inline(always)]
fn scale_by_slope(function: Function, y: &[f32], grad_x: &mut [f32], y_of: impl Fn(f32) -> f32, grad_of: impl Fn(f32) -> f32) {
    match function {
        Function::Identity => update(grad_x, grad_of),
        Function::Relu => update2(grad_x, y, inlined!(|grad_x, y| if y_of(y) <= 0.0 { 0.0 } else { grad_of(grad_x) })),
        Function::Celu { alpha } => update2(
            grad_x,
            y,
            inlined!(|grad_x, y| {
                let (grad_x, y) = (grad_of(grad_x), y_of(y));
                if y <= 0.0 { grad_x * ((y + alpha) * (1.0 / alpha)) } else { grad_x }
            }),
        ),
        Function::Sigmoid => update2(grad_x, y, inlined!(|grad_x, y| grad_of(grad_x) * (y_of(y) * (1.0 - y_of(y))))),
        Function::Tanh => update2(grad_x, y, inlined!(|grad_x, y| grad_of(grad_x) * (1.0 - y_of(y) * y_of(y)))),
    }
}

// Plain loops: `for_each` of the iterators may be compiled separately, without the wider instructions. The compiler does not see
// that old values are read unchanged: otherwise expressions that leave some of them as they are become masked stores, which on
// AMD's processors take five times as long as the whole loop.

#[inline(always)]
fn update(y: &mut [f32], f: impl Fn(f32) -> f32) {
    let zero = black_box(0);
    for y in y {
        *y = f(f32::from_bits(y.to_bits() ^ zero));
    }
}

#[inline(always)]
fn update2(y: &mut [f32], x: &[f32], f: impl Fn(f32, f32) -> f32) {
    let zero = black_box(0);
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(f32::from_bits(y.to_bits() ^ zero), x);
    }
}
