//! The instructions of a tape.

use super::binary::Binary;
use super::unary::Unary;

/// An operand of an instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Source {
    Input(usize),
    Slot(usize),
    Constant(f32),
}

/// The destination of an instruction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Target {
    Slot(usize),
    Output(usize),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Action {
    Copy(Source),
    Unary(Unary, Source),
    /// The derivative of GELU.
    GeluSlope(Source),
    /// A function that is not a comparison.
    Binary(Binary, Source, Source),
    /// Where the comparison of the first two is true, the third, else the fourth. The comparison is `Lt`, `Le` or `Eq`.
    Choose(Binary, [Source; 4]),
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Instruction {
    pub(super) action: Action,
    pub(super) target: Target,
}

impl Action {
    pub(super) fn sources(self) -> impl Iterator<Item = Source> {
        let unused = Source::Constant(0.0);
        let sources = match self {
            Self::Copy(a) | Self::Unary(_, a) | Self::GeluSlope(a) => [a, unused, unused, unused],
            Self::Binary(_, a, b) => [a, b, unused, unused],
            Self::Choose(_, sources) => sources,
        };
        sources.into_iter()
    }

    /// Whether there is a function over vectors for it.
    pub(super) const fn is_in_registers(self) -> bool {
        !matches!(self, Self::Copy(_) | Self::Unary(Unary::Sin | Unary::Cos, _) | Self::Binary(Binary::Pow, ..))
    }
}
