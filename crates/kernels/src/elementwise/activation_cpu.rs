use crate::Activation;
use crate::core::blocks::each_block;
use crate::core::float::{erf, exp, sigmoid, tanh};

/// √(2/π) and the cubic coefficient of the tanh form of GELU.
const GELU_SCALE: f32 = 0.797_884_6;
const GELU_CUBIC: f32 = 0.044_715;

pub(crate) fn activate(activation: Activation, x: &[f32], y: &mut [f32]) {
    each_block(
        y,
        #[inline(always)]
        |at, y| {
            let x = &x[at..at + y.len()];
            match activation {
                Activation::Identity => y.copy_from_slice(x),
                Activation::Relu => map(y, x, relu),
                Activation::Celu { alpha } => map(
                    y,
                    x,
                    #[inline(always)]
                    |x| celu(x, alpha),
                ),
                Activation::Gelu => map(
                    y,
                    x,
                    #[inline(always)]
                    |x| 0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)),
                ),
                Activation::GeluTanh => map(
                    y,
                    x,
                    #[inline(always)]
                    |x| 0.5 * x * (1.0 + tanh(GELU_SCALE * (x + GELU_CUBIC * x * x * x))),
                ),
                Activation::Silu => map(
                    y,
                    x,
                    #[inline(always)]
                    |x| x * sigmoid(x),
                ),
                Activation::Sigmoid => map(y, x, sigmoid),
                Activation::Tanh => map(y, x, tanh),
            }
        },
    );
}

pub(crate) fn activation_grad(activation: Activation, grad_y: &[f32], x: &[f32], grad_x: &mut [f32]) {
    each_block(
        grad_x,
        #[inline(always)]
        |at, grad_x| {
            let (grad_y, x) = (&grad_y[at..at + grad_x.len()], &x[at..at + grad_x.len()]);
            match activation {
                Activation::Identity => grad_x.copy_from_slice(grad_y),
                Activation::Relu => map2(
                    grad_x,
                    grad_y,
                    x,
                    #[inline(always)]
                    |grad_y, x| if x > 0.0 { grad_y } else { 0.0 },
                ),
                Activation::Celu { alpha } => map2(
                    grad_x,
                    grad_y,
                    x,
                    #[inline(always)]
                    |grad_y, x| grad_y * exp(x.min(0.0) / alpha),
                ),
                Activation::Gelu => map2(
                    grad_x,
                    grad_y,
                    x,
                    #[inline(always)]
                    |grad_y, x| {
                        let density = 0.398_942_3 * exp(-0.5 * x * x);
                        grad_y * (0.5 * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2)) + x * density)
                    },
                ),
                Activation::GeluTanh => map2(
                    grad_x,
                    grad_y,
                    x,
                    #[inline(always)]
                    |grad_y, x| {
                        let t = tanh(GELU_SCALE * (x + GELU_CUBIC * x * x * x));
                        let inner = GELU_SCALE * (1.0 + 3.0 * GELU_CUBIC * x * x);
                        grad_y * (0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner)
                    },
                ),
                Activation::Silu => map2(
                    grad_x,
                    grad_y,
                    x,
                    #[inline(always)]
                    |grad_y, x| {
                        let s = sigmoid(x);
                        grad_y * s * (1.0 + x * (1.0 - s))
                    },
                ),
                Activation::Sigmoid => map2(
                    grad_x,
                    grad_y,
                    x,
                    #[inline(always)]
                    |grad_y, x| {
                        let s = sigmoid(x);
                        grad_y * s * (1.0 - s)
                    },
                ),
                Activation::Tanh => map2(
                    grad_x,
                    grad_y,
                    x,
                    #[inline(always)]
                    |grad_y, x| {
                        let t = tanh(x);
                        grad_y * (1.0 - t * t)
                    },
                ),
            }
        },
    );
}

pub(crate) fn output_grad(activation: Activation, grad_y: &[f32], y: &[f32], grad_x: &mut [f32]) {
    each_block(
        grad_x,
        #[inline(always)]
        |at, grad_x| {
            grad_x.copy_from_slice(&grad_y[at..at + grad_x.len()]);
            scale_by_slope(activation, &y[at..at + grad_x.len()], grad_x);
        },
    );
}

/// `y = act(y)` in place, for the epilogue of a matrix product.
#[inline(always)]
pub(crate) fn activate_in_place(activation: Activation, y: &mut [f32]) {
    match activation {
        Activation::Identity => {}
        Activation::Relu => update(y, relu),
        Activation::Celu { alpha } => update(
            y,
            #[inline(always)]
            |y| celu(y, alpha),
        ),
        Activation::Sigmoid => update(y, sigmoid),
        Activation::Tanh => update(y, tanh),
        Activation::Gelu | Activation::GeluTanh | Activation::Silu => unreachable!("refused by Matmul::check"),
    }
}

/// `grad_x *= act'`, the derivative taken from the output `y`.
#[inline(always)]
pub(crate) fn scale_by_slope(activation: Activation, y: &[f32], grad_x: &mut [f32]) {
    match activation {
        Activation::Identity => {}
        Activation::Relu => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| if y > 0.0 { grad_x } else { 0.0 },
        ),
        Activation::Celu { alpha } => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| grad_x * if y > 0.0 { 1.0 } else { y / alpha + 1.0 },
        ),
        Activation::Sigmoid => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| grad_x * (y * (1.0 - y)),
        ),
        Activation::Tanh => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| grad_x * (1.0 - y * y),
        ),
        Activation::Gelu | Activation::GeluTanh | Activation::Silu => unreachable!("has no derivative from its output"),
    }
}

/// Not `max`, which would turn NaN into 0.
#[inline(always)]
fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

#[inline(always)]
fn celu(x: f32, alpha: f32) -> f32 {
    let below = alpha * (exp(x / alpha) - 1.0);
    if x > 0.0 { x } else { below }
}

// Plain loops: the iterators' own `for_each` may be compiled apart, without the wider instructions.

#[inline(always)]
fn map(y: &mut [f32], x: &[f32], f: impl Fn(f32) -> f32) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(x);
    }
}

#[inline(always)]
fn map2(y: &mut [f32], a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
    for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
        *y = f(a, b);
    }
}

#[inline(always)]
fn update(y: &mut [f32], f: impl Fn(f32) -> f32) {
    for y in y {
        *y = f(*y);
    }
}

#[inline(always)]
fn update2(y: &mut [f32], x: &[f32], f: impl Fn(f32, f32) -> f32) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y = f(*y, x);
    }
}
