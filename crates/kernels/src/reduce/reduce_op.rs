//! The operation of a reduction.

use crate::expr::Expr;

/// How a [`MapReduce`](crate::MapReduce) reduces its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reducer {
    /// `Σ x`.
    Sum,
    /// `Σ x / n`.
    Mean,
    /// The maximum.
    Max,
    /// The minimum.
    Min,
    /// `√Σ x²`, the Euclidean norm.
    Norm,
    /// 1 if an element is infinite or NaN, else 0.
    NonFinite,
}

/// How a chain of elements is combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fold {
    Sum,
    Max,
    Min,
}

impl Reducer {
    /// The name of the operation, such as `sum`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sum => "sum",
            Self::Mean => "mean",
            Self::Max => "max",
            Self::Min => "min",
            Self::Norm => "norm",
            Self::NonFinite => "non_finite",
        }
    }

    pub(super) const fn fold(self) -> Fold {
        match self {
            Self::Sum | Self::Mean | Self::Norm => Fold::Sum,
            Self::Max | Self::NonFinite => Fold::Max,
            Self::Min => Fold::Min,
        }
    }

    /// The value to fold for an element.
    pub(super) fn element(self, x: &Expr) -> Expr {
        match self {
            Self::Norm => x * x,
            Self::NonFinite => 1.0 - x.is_finite(),
            Self::Sum | Self::Mean | Self::Max | Self::Min => x.clone(),
        }
    }

    /// The reduction of `n` elements, from their fold.
    pub(super) fn result(self, folded: Expr, n: usize) -> Expr {
        match self {
            Self::Mean => folded / n as f32,
            Self::Norm => folded.sqrt(),
            Self::Sum | Self::Max | Self::Min | Self::NonFinite => folded,
        }
    }
}

impl Fold {
    pub(super) const fn identity(self) -> f32 {
        match self {
            Self::Sum => 0.0,
            Self::Max => f32::NEG_INFINITY,
            Self::Min => f32::INFINITY,
        }
    }
}
