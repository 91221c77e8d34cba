//! An expression is a list of operations.

use std::sync::Arc;

use super::binary::Binary;
use super::unary::Unary;

/// An elementwise expression over inputs and constants.
///
/// Cheap to clone. Two are equal if they are the same operations in the same order, with constants compared by their bits.
///
/// # Examples
/// ```
/// use brisk_kernels::expr::Expr;
///
/// let (x, y) = (Expr::input(0), Expr::input(1));
/// let squared_error = (&x - &y).powi(2);
/// assert_eq!(squared_error.to_string(), "t0 * t0 where t0 = x0 - x1");
/// assert_eq!(squared_error.evaluate(&[3.0, 1.0]), 4.0);
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Expr {
    /// Each operation comes after its arguments; the last one is the result. All are needed, and no two are equal.
    pub(super) ops: Arc<[Op]>,
}

/// The index of an operation in the list of an expression.
pub(crate) type Id = u32;

/// One operation of an expression, over earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Op {
    /// Input number `.0`.
    Input(u32),
    /// An `f32` by its bits, so that `-0.0` and NaN can be compared.
    Constant(u32),
    Unary(Unary, Id),
    Binary(Binary, Id, Id),
    /// The second where the first is not 0, else the third.
    Select(Id, Id, Id),
}

impl Op {
    /// The operations whose results are its arguments, in order.
    pub(crate) fn arguments(self) -> impl Iterator<Item = Id> {
        let (count, ids) = match self {
            Self::Input(_) | Self::Constant(_) => (0, [0; 3]),
            Self::Unary(_, a) => (1, [a, 0, 0]),
            Self::Binary(_, a, b) => (2, [a, b, 0]),
            Self::Select(a, b, c) => (3, [a, b, c]),
        };
        ids.into_iter().take(count)
    }

    /// The same operation with other arguments.
    pub(crate) fn map_arguments(self, mut f: impl FnMut(Id) -> Id) -> Self {
        match self {
            Self::Input(_) | Self::Constant(_) => self,
            Self::Unary(op, a) => Self::Unary(op, f(a)),
            Self::Binary(op, a, b) => Self::Binary(op, f(a), f(b)),
            Self::Select(a, b, c) => Self::Select(f(a), f(b), f(c)),
        }
    }

    pub(crate) const fn constant(value: f32) -> Self {
        Self::Constant(value.to_bits())
    }

    /// The value of a constant.
    pub(crate) const fn as_constant(self) -> Option<f32> {
        match self {
            Self::Constant(bits) => Some(f32::from_bits(bits)),
            _ => None,
        }
    }

    pub(crate) const fn is_comparison(self) -> bool {
        matches!(self, Self::Binary(op, ..) if op.is_comparison())
    }
}
