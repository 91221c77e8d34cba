//! Epilogues of twins. Results are bit-identical to those of [`Map`](crate::Map)s of the same expressions; common activations have plain loops, without an evaluator for
//! each row.

use std::hash::{Hash, Hasher};
use std::hint::black_box;
use std::sync::{Arc, LazyLock, OnceLock};

use crate::expr::{Activation, BLOCK_LEN, Evaluator, Expr, Operand, Unary, apply, scale_by_gelu_slope};
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::product::epilogue::{Epilogue, EpilogueOperand};
use crate::random::draws_cpu::Drawn;
use crate::sizes::in_u32;

/// An [`Epilogue`] on the CPU, for all rows of a result.
#[derive(Debug)]
pub(crate) struct Finish {
    operand: Option<EpilogueOperand>,
    drawn: Option<Drawn>,
    form: Arc<Form>,
}

/// The form of an epilogue, which is found when the kernel first runs, since that may take longer than a small product. Epilogues do not differ by it.
#[derive(Debug, Clone)]
pub(super) struct Prepared(OnceLock<Arc<Form>>);

impl Prepared {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
}

impl PartialEq for Prepared {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Prepared {}

impl Hash for Prepared {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[derive(Debug)]
enum Form {
    /// Adds the row, if there is one, then applies the function.
    Forward(Function),
    /// The same, then dropout: 0 with this probability, else multiplied by this.
    Dropout(Function, f32, f32),
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

    /// The function whose expression in this form, followed by dropout by random number `drawn`, equals `expr`; the probability and the scale of dropout.
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
        let biased = Epilogue::bias(&activation).expr().clone();
        Self { function, plain: activation.forward, biased, gradient }
    }
}

impl Form {
    fn of(epilogue: &Epilogue) -> Self {
        let expr = epilogue.expr();
        let dropout = |(function, p, scale)| Self::Dropout(function, p, scale);
        let form = match (epilogue.operand(), epilogue.draws()) {
            (None, None) => Function::find(expr, |forms| &forms.plain).map(Self::Forward),
            (Some(EpilogueOperand::Row), None) => Function::find(expr, |forms| &forms.biased).map(Self::Forward),
            (None, Some(_)) => Function::find_dropout(expr, 1, |forms| &forms.plain).map(dropout),
            (Some(EpilogueOperand::Row), Some(_)) => Function::find_dropout(expr, 2, |forms| &forms.biased).map(dropout),
            (Some(EpilogueOperand::Matrix), None) if *expr == Activation::gelu().grad() => Some(Self::GeluGradient),
            (Some(EpilogueOperand::Matrix), None) => Function::find(expr, |forms| &forms.gradient)
                .map(Self::Gradient)
                .or_else(|| Function::find_scaled(expr).map(|(function, scale)| Self::ScaledGradient(function, scale))),
            (Some(EpilogueOperand::Matrix), Some(_)) => None,
        };
        form.unwrap_or_else(|| Self::Any(Evaluator::new(std::slice::from_ref(expr))))
    }
}

impl Finish {
    /// Leaves sums unchanged.
    pub(crate) fn none() -> Self {
        Self { operand: None, drawn: None, form: Arc::new(Form::Forward(Function::Identity)) }
    }

    /// `args` has the state of the run, if the epilogue reads random numbers.
    pub(crate) fn new(epilogue: &Epilogue, args: &TwinArgs<'_>) -> Self {
        let drawn = epilogue.draws().map(|draws| Drawn::new(&draws, args.read("state")));
        let form = epilogue.prepared.0.get_or_init(|| Arc::new(Form::of(epilogue)));
        Self { operand: epilogue.operand(), drawn, form: form.clone() }
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

    /// Finishes `y`, part of a row or whole rows whose first element has index `at` in the result, with the elements of
    /// [`operand_range`](Self::operand_range).
    #[inline(always)]
    pub(crate) fn run(&self, operand: &[f32], at: usize, y: &mut [f32]) {
        match &*self.form {
            Form::Forward(function) => self.run_forward(*function, operand, y),
            Form::Dropout(function, p, scale) => {
                self.run_forward(*function, operand, y);
                if let Some(drawn) = self.drawn {
                    drawn.drop_out(*p, *scale, in_u32(at), y);
                }
            }
            Form::Gradient(function) => scale_by_slope(*function, operand, y),
            Form::ScaledGradient(function, scale) => scale_by_scaled_slope(*function, *scale, operand, y),
            Form::GeluGradient => scale_by_gelu_slope(operand, y),
            Form::Any(evaluator) => {
                let n = if self.operand == Some(EpilogueOperand::Row) { operand.len().max(1) } else { y.len().max(1) };
                let operand = self.operand.map(|_| Operand::Slice(operand));
                for (i, y) in y.chunks_mut(n).enumerate() {
                    self.evaluate(evaluator, operand, at + i * n, y);
                }
            }
        }
    }

    /// Evaluates the expression for `y`, which starts at index `at` of the result, and as many elements of the further argument.
    fn evaluate(&self, evaluator: &Evaluator, operand: Option<Operand<'_>>, at: usize, y: &mut [f32]) {
        let Some(drawn) = self.drawn else {
            return evaluator.run_in_place(y, operand.as_slice());
        };
        let mut numbers = [0.0; BLOCK_LEN];
        for start in (0..y.len()).step_by(BLOCK_LEN) {
            let range = start..(start + BLOCK_LEN).min(y.len());
            let numbers = &mut numbers[..range.len()];
            drawn.fill(in_u32(at + start), numbers);
            let operand = operand.map(|operand| operand.slice(range.clone()));
            let inputs: Vec<Operand<'_>> = operand.into_iter().chain([Operand::Slice(numbers)]).collect();
            evaluator.run_in_place(&mut y[range], &inputs);
        }
    }

    /// Adds the row, if there is one, then applies the function.
    #[inline(always)]
    fn run_forward(&self, function: Function, operand: &[f32], y: &mut [f32]) {
        if self.operand.is_some() && !operand.is_empty() {
            for y in y.chunks_exact_mut(operand.len()) {
                for (y, bias) in y.iter_mut().zip(operand) {
                    *y += bias;
                }
            }
        }
        activate(function, y);
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
    scale_by_slope_of(function, y, grad_x, |y| y, |grad_x| grad_x);
}

/// The same for an output before dropout: `y` is divided by `scale`, and the gradient multiplied by it.
#[inline(always)]
fn scale_by_scaled_slope(function: Function, scale: f32, y: &[f32], grad_x: &mut [f32]) {
    // To ReLU only the sign of the quotient matters, which spares the division. Quotients of at most half the smallest number are rounded to 0.
    if function == Function::Relu {
        let rounded_to_zero = (scale / 2.0).floor() * f32::from_bits(1);
        return update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| if y <= rounded_to_zero { 0.0 } else { grad_x * scale },
        );
    }
    scale_by_slope_of(function, y, grad_x, |y| y / scale, |grad_x| grad_x * scale);
}

#[inline(always)]
fn scale_by_slope_of(function: Function, y: &[f32], grad_x: &mut [f32], y_of: impl Fn(f32) -> f32, grad_of: impl Fn(f32) -> f32) {
    match function {
        Function::Identity => update(grad_x, grad_of),
        Function::Relu => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| if y_of(y) <= 0.0 { 0.0 } else { grad_of(grad_x) },
        ),
        Function::Celu { alpha } => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| {
                let (grad_x, y) = (grad_of(grad_x), y_of(y));
                if y <= 0.0 { grad_x * (y / alpha + 1.0) } else { grad_x }
            },
        ),
        Function::Sigmoid => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| grad_of(grad_x) * (y_of(y) * (1.0 - y_of(y))),
        ),
        Function::Tanh => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| grad_of(grad_x) * (1.0 - y_of(y) * y_of(y)),
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
