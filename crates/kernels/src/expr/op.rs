//! The operations of an expression.

use std::fmt;

use super::unary::Unary;

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

/// A function of two arguments. Comparisons give 1 or 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Max,
    Min,
    Pow,
    Lt,
    Le,
    Eq,
    Ne,
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

impl Binary {
    /// Whether the arguments may be swapped without changing the value.
    pub(crate) const fn is_commutative(self) -> bool {
        matches!(self, Self::Add | Self::Mul | Self::Eq | Self::Ne)
    }

    pub(crate) const fn is_comparison(self) -> bool {
        matches!(self, Self::Lt | Self::Le | Self::Eq | Self::Ne)
    }

    /// The operator between its operands, and its precedence; `None` for operations that are written as a call.
    pub(crate) const fn infix(self) -> Option<(&'static str, u8)> {
        match self {
            Self::Lt => Some(("<", 1)),
            Self::Le => Some(("<=", 1)),
            Self::Eq => Some(("==", 1)),
            Self::Ne => Some(("!=", 1)),
            Self::Add => Some(("+", 2)),
            Self::Sub => Some(("-", 2)),
            Self::Mul => Some(("*", 3)),
            Self::Div => Some(("/", 3)),
            Self::Max | Self::Min | Self::Pow => None,
        }
    }
}

impl fmt::Display for Binary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.infix(), self) {
            (Some((sign, _)), _) => sign,
            (None, Self::Max) => "max",
            (None, Self::Min) => "min",
            (None, _) => "pow",
        })
    }
}
