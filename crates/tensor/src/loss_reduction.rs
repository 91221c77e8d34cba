/// The reduction of elementwise losses: PyTorch's `reduction`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LossReduction {
    /// Their mean.
    #[default]
    Mean,
    /// Their sum.
    Sum,
    /// No reduction: one loss per element.
    None,
}
