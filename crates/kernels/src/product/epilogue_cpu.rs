//! Epilogues of twins. Results are bit-identical to those of [`Map`](crate::Map)s of the same expressions; common activations have plain loops, without an evaluator for
//! each row.

use std::hint::black_box;
use std::sync::LazyLock;

use crate::expr::{Activation, BLOCK_LEN, Evaluator, Expr, Operand, Unary, apply, scale_by_gelu_slope};
use crate::{Epilogue, EpilogueOperand};

/// An [`Epilogue`] prepared for the CPU, once for all rows.
#[derive(Debug)]
pub(crate) struct Finish {
    operand: Option<EpilogueOperand>,
    form: Form,
}

#[derive(Debug)]
enum Form {
    /// Adds the row, if there is one, then applies the function.
    Forward(Function),
    /// Multiplies the sum by the derivative that follows from the matrix, which is an output of the function.
    Gradient(Function),
    /// The same for a matrix and a sum that are both to be scaled: that of an activation before dropout, whose output was divided by the share that is kept. The sum is multiplied by
    /// this, the matrix divided by it.
    ScaledGradient(Function, f32),
    /// Multiplies the sum by the derivative of GELU, whose argument is the matrix.
    GeluGradient,
    Any(Evaluator),
}

/// Functions with specialised loops.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Function {
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
        let biased = Epilogue::bias(&activation).expr().clone();
        Self { function, plain: activation.forward, biased, gradient }
    }
}

impl Finish {
    pub(crate) fn new(epilogue: &Epilogue) -> Self {
        let (expr, operand) = (epilogue.expr(), epilogue.operand());
        let form = match operand {
            Some(EpilogueOperand::Matrix) if *expr == Activation::gelu().grad() => Some(Form::GeluGradient),
            Some(EpilogueOperand::Matrix) => Function::find(expr, |forms| &forms.gradient)
                .map(Form::Gradient)
                .or_else(|| Function::find_scaled(expr).map(|(function, scale)| Form::ScaledGradient(function, scale))),
            Some(EpilogueOperand::Row) => Function::find(expr, |forms| &forms.biased).map(Form::Forward),
            None => Function::find(expr, |forms| &forms.plain).map(Form::Forward),
        };
        Self { operand, form: form.unwrap_or_else(|| Form::Any(Evaluator::new(std::slice::from_ref(expr)))) }
    }

    /// The elements of the further argument that belong to `len` results starting at column `col` of row `row`, of `n` columns: they are within one row, unless they are
    /// whole rows.
    pub(crate) fn operand_range(&self, n: usize, row: usize, col: usize, len: usize) -> std::ops::Range<usize> {
        match self.operand {
            None => 0..0,
            Some(EpilogueOperand::Row) => col..col + len.min(n),
            Some(EpilogueOperand::Matrix) => row * n + col..row * n + col + len,
        }
    }

    /// Finishes `y`, part of a row or whole rows, with the elements of [`operand_range`](Self::operand_range).
    #[inline(always)]
    pub(crate) fn run(&self, operand: &[f32], y: &mut [f32]) {
        match &self.form {
            Form::Forward(function) => {
                if self.operand.is_some() && !operand.is_empty() {
                    for y in y.chunks_exact_mut(operand.len()) {
                        for (y, bias) in y.iter_mut().zip(operand) {
                            *y += bias;
                        }
                    }
                }
                activate(*function, y);
            }
            Form::Gradient(function) => scale_by_slope(*function, operand, y),
            Form::ScaledGradient(function, scale) => {
                let mut divided = [0.0; BLOCK_LEN];
                for (y, operand) in y.chunks_mut(BLOCK_LEN).zip(operand.chunks(BLOCK_LEN)) {
                    let divided = &mut divided[..y.len()];
                    update2(
                        divided,
                        operand,
                        #[inline(always)]
                        |_, x| x / scale,
                    );
                    update(
                        y,
                        #[inline(always)]
                        |y| y * scale,
                    );
                    scale_by_slope(*function, divided, y);
                }
            }
            Form::GeluGradient => scale_by_gelu_slope(operand, y),
            Form::Any(evaluator) => match self.operand {
                None => evaluator.run_in_place(y, &[]),
                Some(EpilogueOperand::Matrix) => evaluator.run_in_place(y, &[Operand::Slice(operand)]),
                Some(EpilogueOperand::Row) => {
                    y.chunks_exact_mut(operand.len().max(1)).for_each(|y| evaluator.run_in_place(y, &[Operand::Slice(operand)]));
                }
            },
        }
    }
}

#[inline(always)]
fn activate(function: Function, y: &mut [f32]) {
    match function {
        Function::Identity => {}
        Function::Relu => update(
            y,
            #[inline(always)]
            |y| if y <= 0.0 { 0.0 } else { y },
        ),
        Function::Celu { alpha } => celu(y, alpha),
        Function::Sigmoid => apply(Unary::Sigmoid, y),
        Function::Tanh => apply(Unary::Tanh, y),
    }
}

fn celu(y: &mut [f32], alpha: f32) {
    let mut below = [0.0; BLOCK_LEN];
    for y in y.chunks_mut(BLOCK_LEN) {
        let below = &mut below[..y.len()];
        below.iter_mut().zip(&*y).for_each(|(below, y)| *below = y / alpha);
        apply(Unary::Expm1, below);
        update2(
            y,
            below,
            #[inline(always)]
            |y, below| if y <= 0.0 { below * alpha } else { y },
        );
    }
}

/// `grad_x *= act'`, where the derivative is computed from the output `y`.
#[inline(always)]
fn scale_by_slope(function: Function, y: &[f32], grad_x: &mut [f32]) {
    match function {
        Function::Identity => {}
        Function::Relu => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| if y <= 0.0 { 0.0 } else { grad_x },
        ),
        Function::Celu { alpha } => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| if y <= 0.0 { grad_x * (y / alpha + 1.0) } else { grad_x },
        ),
        Function::Sigmoid => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| grad_x * (y * (1.0 - y)),
        ),
        Function::Tanh => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| grad_x * (1.0 - y * y),
        ),
    }
}

// Plain loops: `for_each` of the iterators may be compiled separately, without the wider instructions. The compiler does not see that old values are read unchanged:
// otherwise expressions that leave some of them as they are become masked stores, which on AMD's processors take five times as long as the whole loop.

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
