use std::fmt::Debug;

use super::number::Number;
use super::step_value::StepValue;
use crate::kernel::interval::Interval;

/// How each element changes in a step, stated once: compiled for the CPU, and written as an expression into the WGSL of the
/// kernel [`Update`](crate::Update).
///
/// It reads `V` [numbers of the step](StepValue) and `I` inputs, such as a gradient, and replaces `O` values, such as a parameter
/// and its momentum.
///
/// # Examples
/// ```
/// use brisk_kernels::{Kernel, Number, Rule, StepValue, Update};
///
/// /// Gradient descent with momentum.
/// #[derive(Debug, Clone)]
/// struct Descent {
///     momentum: f32,
/// }
///
/// impl Rule<1, 1, 2> for Descent {
///     fn values(&self) -> [StepValue; 1] {
///         [StepValue::Rate]
///     }
///
///     #[inline(always)]
///     fn update<N: Number>(&self, [rate]: [N; 1], [grad]: [N; 1], [param, momentum]: [N; 2]) -> [N; 2] {
///         let momentum = momentum * self.momentum + grad;
///         [param - rate * momentum, momentum]
///     }
/// }
///
/// let kernel = Update::new("descent", Descent { momentum: 0.9 }, 64).table_len(10);
/// let names: Vec<_> = kernel.args().iter().map(|arg| arg.name).collect();
/// assert_eq!(names, ["x0", "table", "state", "y0", "y1"]);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
pub trait Rule<const V: usize, const I: usize, const O: usize>: Debug + Clone + Send + Sync + 'static {
    /// The numbers of the step that it reads.
    fn values(&self) -> [StepValue; V];

    /// The settings, by name, and the interval that each must be in. None by default.
    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        Vec::new()
    }

    /// 1 if the update takes place, else 0. `is_skipped` is 1 in a step that must be skipped, else 0; by default there is no
    /// update then.
    ///
    /// Implement it with `#[inline(always)]`.
    #[inline(always)]
    fn takes_place<N: Number>(&self, is_skipped: N, _values: [N; V]) -> N {
        -is_skipped + 1.0
    }

    /// The new values of an element.
    ///
    /// Implement it with `#[inline(always)]`, so that it is compiled for the vector instructions of the processor.
    fn update<N: Number>(&self, values: [N; V], inputs: [N; I], replaced: [N; O]) -> [N; O];
}
