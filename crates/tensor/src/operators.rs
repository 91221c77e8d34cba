//! Arithmetic operators of tensors: `&a + &b`, `1.0 - a`, `-&a`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::elementwise::unary;
use crate::graph::tensor::Tensor;

/// A binary operator of owned and borrowed tensors, which calls the method of the same name, and of a tensor and a number, which
/// uses an expression that contains the number.
macro_rules! operator {
    ($trait:ident, $operator:ident, $method:ident, $symbol:tt) => {
        operator!(@tensors $trait, $operator, $method, Tensor, Tensor);
        operator!(@tensors $trait, $operator, $method, Tensor, &Tensor);
        operator!(@tensors $trait, $operator, $method, &Tensor, Tensor);
        operator!(@tensors $trait, $operator, $method, &Tensor, &Tensor);
        operator!(@numbers $trait, $operator, $method, $symbol, Tensor);
        operator!(@numbers $trait, $operator, $method, $symbol, &Tensor);
    };
    (@tensors $trait:ident, $operator:ident, $method:ident, $a:ty, $b:ty) => {
        impl $trait<$b> for $a {
            type Output = Tensor;

            #[track_caller]
            fn $operator(self, b: $b) -> Tensor {
                Tensor::$method(&self, &b)
            }
        }
    };
    (@numbers $trait:ident, $operator:ident, $method:ident, $symbol:tt, $a:ty) => {
        impl $trait<f32> for $a {
            type Output = Tensor;

            #[track_caller]
            fn $operator(self, b: f32) -> Tensor {
                unary(&self, stringify!($method), |a| a $symbol b)
            }
        }

    };
}

/// A binary operator of a number and a tensor. The body is not a closure, so that an error has the caller's line.
macro_rules! number_first {
    ($trait:ident, $operator:ident, |$a:ident, $b:ident| $body:expr) => {
        number_first!(@tensor $trait, $operator, |$a, $b| $body, Tensor);
        number_first!(@tensor $trait, $operator, |$a, $b| $body, &Tensor);
    };
    (@tensor $trait:ident, $operator:ident, |$a:ident, $b:ident| $body:expr, $tensor:ty) => {
        impl $trait<$tensor> for f32 {
            type Output = Tensor;

            #[track_caller]
            fn $operator(self, tensor: $tensor) -> Tensor {
                let ($a, $b) = (self, &tensor);
                $body
            }
        }
    };
}

operator!(Add, add, add, +);
operator!(Sub, sub, sub, -);
operator!(Mul, mul, multiply, *);
operator!(Div, div, div, /);

number_first!(Add, add, |a, b| unary(b, "add", |b| a + b));
number_first!(Sub, sub, |a, b| unary(b, "sub", |b| a - b));
number_first!(Mul, mul, |a, b| unary(b, "multiply", |b| a * b));
// In f32 under autocast, as in PyTorch, where it is a reciprocal.
number_first!(Div, div, |a, b| b.steep("div", |b| a / b));

impl Neg for Tensor {
    type Output = Self;

    #[track_caller]
    fn neg(self) -> Self {
        Self::neg(&self)
    }
}

impl Neg for &Tensor {
    type Output = Tensor;

    #[track_caller]
    fn neg(self) -> Tensor {
        Tensor::neg(self)
    }
}
