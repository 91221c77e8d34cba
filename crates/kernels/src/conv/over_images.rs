//! What a convolution and its gradient in the input have in common: the inputs are images, weights and the argument of the
//! epilogue, and the output is images.

use crate::conv::conv_shape::ConvShape;
use crate::conv::window::Images;
use crate::kernel::floats::Floats;
use crate::product::epilogue::Epilogue;
use crate::product::epilogue_cpu::Finish;

/// A convolution, or its gradient in the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OverImages<'a> {
    pub(crate) direction: Direction,
    pub(crate) shape: &'a ConvShape,
    pub(crate) epilogue: &'a Epilogue,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// The operands of a twin.
pub(crate) struct Operands<'a, T, Y> {
    pub(crate) images: &'a [T],
    pub(crate) weight: Floats<'a>,
    pub(crate) finish: Finish,
    /// The further argument of the epilogue; empty if it has none.
    pub(crate) operand: Floats<'a>,
    pub(crate) result: &'a mut [Y],
    /// Memory for the weights in the order in which the twin reads them.
    pub(crate) sorted: &'a mut [f32],
}

impl OverImages<'_> {
    /// The images that are read.
    pub(crate) const fn source(&self) -> Images {
        match self.direction {
            Direction::Forward => self.shape.x,
            Direction::Backward => self.shape.y(),
        }
    }

    /// The images that are written.
    pub(crate) const fn result(&self) -> Images {
        match self.direction {
            Direction::Forward => self.shape.y(),
            Direction::Backward => self.shape.x,
        }
    }

    /// The index of the result in the argument list, after the images, the weights and the epilogue's arguments.
    pub(crate) fn result_arg(&self) -> usize {
        2 + self.epilogue.n_args()
    }
}
