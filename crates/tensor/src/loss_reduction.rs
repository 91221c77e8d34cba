/// How the losses of elements become the loss of a batch: PyTorch's `reduction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LossReduction {
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// They stay as they are, one for each element.
    None,
}
