//! The functions of two arguments.

use std::fmt;

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
