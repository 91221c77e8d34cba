//! Arithmetic operators of tensors: `&a + &b`, `1.0 - a`, `-&a`.

use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::Tensor;
use crate::elementwise::unary;

/// A binary operator of owned and borrowed tensors by the method of its name, and of a tensor and a number by an expression with the number in it.
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

        impl $trait<$a> for f32 {
            type Output = Tensor;

            #[track_caller]
            fn $operator(self, b: $a) -> Tensor {
                unary(&b, stringify!($method), |b| self $symbol b)
            }
        }
    };
}

operator!(Add, add, add, +);
operator!(Sub, sub, sub, -);
operator!(Mul, mul, multiply, *);
operator!(Div, div, div, /);

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
