use brisk_tensor::{DType, Precision, Tensor};

/// How a case is computed in a precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Under autocast.
    Stored(Precision),
    /// In f32, with operands that have been rounded where autocast rounds them: the function itself, at the point where it is
    /// evaluated in that precision.
    Rounded(Precision),
}

impl Form {
    /// The precision in which operations are recorded.
    pub(crate) fn autocast(self) -> Precision {
        match self {
            Self::Stored(precision) => precision,
            Self::Rounded(_) => Precision::F32,
        }
    }

    /// `x` as the input of a product.
    pub(crate) fn operand(self, x: &Tensor) -> Tensor {
        match self {
            Self::Stored(_) => x.clone(),
            Self::Rounded(precision) => x.cast(precision.dtype()).cast(DType::F32),
        }
    }
}
