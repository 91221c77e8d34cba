/// The reduction that combines the values of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReduceOp {
    /// The sum; integers wrap around.
    Sum,
    /// The sum divided by the number of ranks; floats only.
    Mean,
    /// The maximum; NaN counts as larger than every number.
    Max,
}
