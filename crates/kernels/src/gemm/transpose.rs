/// Which operands of a matrix product are stored transposed.
#[derive(Debug, Clone, Copy, PartialEq, Hash, Eq, Default)]
pub enum Transpose {
    /// Neither.
    #[default]
    None,
    /// `a` is stored `[k, m]`.
    A,
    /// `b` is stored `[n, k]`.
    B,
    /// Both.
    Both,
}

impl Transpose {
    /// The variant for two flags, as in BLAS.
    pub const fn of(a: bool, b: bool) -> Self {
        match (a, b) {
            (false, false) => Self::None,
            (true, false) => Self::A,
            (false, true) => Self::B,
            (true, true) => Self::Both,
        }
    }

    /// Whether `a` is stored transposed.
    pub const fn a(self) -> bool {
        matches!(self, Self::A | Self::Both)
    }

    /// Whether `b` is stored transposed.
    pub const fn b(self) -> bool {
        matches!(self, Self::B | Self::Both)
    }
}
