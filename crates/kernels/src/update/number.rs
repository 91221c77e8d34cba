//! The arithmetic of a [`Rule`](crate::Rule), which is compiled for f32 and written as an expression for the WGSL.

use std::cell::RefCell;
use std::ops::{Add, Div, Mul, Neg, Sub};

use crate::expr::Expr;
use crate::sizes::in_u32;

/// A number that a [`Rule`](crate::Rule) computes with: f32 on the CPU, [`Symbol`] while the WGSL is written. All operations are
/// those of [`Expr`], with the same results.
pub trait Number:
    Copy
    + Neg<Output = Self>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Add<f32, Output = Self>
    + Sub<f32, Output = Self>
    + Mul<f32, Output = Self>
    + Div<f32, Output = Self>
{
    /// The same number for every element.
    fn constant(value: f32) -> Self;
    /// The square root; NaN below zero.
    fn sqrt(self) -> Self;
    /// `1 / x`.
    fn recip(self) -> Self;
    /// 1 if it is greater than 0, else 0.
    fn is_positive(self) -> Self;
    /// `if_true` if it is not 0, else `if_false`.
    fn select(self, if_true: Self, if_false: Self) -> Self;
}

impl Number for f32 {
    #[inline(always)]
    fn constant(value: f32) -> Self {
        value
    }

    #[inline(always)]
    fn sqrt(self) -> Self {
        Self::sqrt(self)
    }

    #[inline(always)]
    fn recip(self) -> Self {
        1.0 / self
    }

    #[inline(always)]
    fn is_positive(self) -> Self {
        if self > 0.0 { 1.0 } else { 0.0 }
    }

    #[inline(always)]
    fn select(self, if_true: Self, if_false: Self) -> Self {
        if self == 0.0 { if_false } else { if_true }
    }
}

/// A number that is not known yet: an input of an expression, or the result of an operation on others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Symbol(u32);

thread_local! {
    /// The expression that each symbol of this thread stands for.
    static EXPRS: RefCell<Vec<Expr>> = const { RefCell::new(Vec::new()) };
}

/// The expressions of the results of `f`, whose symbols come from [`Symbol::input`].
pub(super) fn trace<const N: usize>(f: impl FnOnce() -> [Symbol; N]) -> [Expr; N] {
    let exprs = f().map(Symbol::expr);
    EXPRS.with_borrow_mut(Vec::clear);
    exprs
}

impl Symbol {
    /// Input number `i` of the expression.
    pub(super) fn input(i: usize) -> Self {
        Self::of(Expr::input(i))
    }

    fn of(expr: Expr) -> Self {
        EXPRS.with_borrow_mut(|exprs| {
            exprs.push(expr);
            Self(in_u32(exprs.len() - 1))
        })
    }

    fn expr(self) -> Expr {
        EXPRS.with_borrow(|exprs| exprs[self.0 as usize].clone())
    }
}

impl Number for Symbol {
    fn constant(value: f32) -> Self {
        Self::of(Expr::constant(value))
    }

    fn sqrt(self) -> Self {
        Self::of(self.expr().sqrt())
    }

    fn recip(self) -> Self {
        Self::of(self.expr().recip())
    }

    fn is_positive(self) -> Self {
        Self::of(self.expr().gt(0.0))
    }

    fn select(self, if_true: Self, if_false: Self) -> Self {
        Self::of(self.expr().select(if_true.expr(), if_false.expr()))
    }
}

impl Neg for Symbol {
    type Output = Self;

    fn neg(self) -> Self {
        Self::of(-self.expr())
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident),*) => {$(
        impl $trait for Symbol {
            type Output = Self;

            fn $method(self, other: Self) -> Self {
                Self::of(self.expr().$method(other.expr()))
            }
        }

        impl $trait<f32> for Symbol {
            type Output = Self;

            fn $method(self, other: f32) -> Self {
                Self::of(self.expr().$method(other))
            }
        }
    )*};
}

operators!(Add add, Sub sub, Mul mul, Div div);
