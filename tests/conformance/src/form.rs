use brisk_tensor::{DType, Precision, Tensor};

/// How a case is computed in a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Under autocast.
    Stored(Precision),
    /// In f32, of operands that have been rounded where autocast rounds them: the function itself, at the very place where it is in that precision.
    Rounded(Precision),
}

impl Form {
    /// That which operations are recorded in.
    pub(crate) fn autocast(self) -> Precision {
        match self {
            Self::Stored(precision) => precision,
            Self::Rounded(_) => Precision::F32,
        }
    }

    /// `x` as a product reads it.
    pub(crate) fn operand(self, x: &Tensor) -> Tensor {
        match self {
            Self::Stored(_) => x.clone(),
            Self::Rounded(precision) => x.cast(precision.dtype()).cast(DType::F32),
        }
    }
}
