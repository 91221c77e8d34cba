//! Activations in the epilogues of twins: the bits are those of [`Map`](crate::Map)s of the same expressions, without an evaluator for each row.

use crate::Activation;
use crate::expr::{BLOCK_LEN, Unary, apply};

/// `y = act(y)`, for the epilogue of a product.
#[inline(always)]
pub(crate) fn activate_in_place(activation: Activation, y: &mut [f32]) {
    match activation {
        Activation::Identity => {}
        Activation::Relu => update(
            y,
            #[inline(always)]
            |y| if y <= 0.0 { 0.0 } else { y },
        ),
        Activation::Celu { alpha } => celu(y, alpha),
        Activation::Sigmoid => apply(Unary::Sigmoid, y),
        Activation::Tanh => apply(Unary::Tanh, y),
        Activation::Gelu | Activation::GeluTanh | Activation::Silu => unreachable!("refused when the kernel was checked"),
    }
}

fn celu(y: &mut [f32], alpha: f32) {
    let mut below = [0.0; BLOCK_LEN];
    for y in y.chunks_mut(BLOCK_LEN) {
        let below = &mut below[..y.len()];
        below.iter_mut().zip(&*y).for_each(|(below, y)| *below = y / alpha);
        apply(Unary::Expm1, below);
        y.iter_mut().zip(&*below).for_each(|(y, below)| *y = if *y <= 0.0 { below * alpha } else { *y });
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
            |grad_x, y| if y <= 0.0 { 0.0 } else { grad_x },
        ),
        Activation::Celu { alpha } => update2(
            grad_x,
            y,
            #[inline(always)]
            |grad_x, y| if y <= 0.0 { grad_x * (y / alpha + 1.0) } else { grad_x },
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

// Plain loops: the iterators' own `for_each` may be compiled apart, without the wider instructions.

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
