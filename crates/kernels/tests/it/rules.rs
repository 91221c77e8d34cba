//! Rules for the tests of the kernel that applies them.

use brisk_kernels::*;

/// Gradient descent with momentum 0.5.
#[derive(Debug, Clone)]
pub(crate) struct Descent {
    pub(crate) decay: f32,
}

impl Rule<2, 1, 2> for Descent {
    fn values(&self) -> [StepValue; 2] {
        [StepValue::Rate, StepValue::Decay(self.decay)]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![("decay", self.decay, Interval::NonNegative)]
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay]: [N; 2], [grad]: [N; 1], [param, momentum]: [N; 2]) -> [N; 2] {
        let momentum = momentum * 0.5 + (grad + decay * param);
        [param - rate * momentum, momentum]
    }
}

/// Every operation and every number of the step, each of which changes the result.
#[derive(Debug, Clone)]
pub(crate) struct Everything;

impl Rule<9, 2, 1> for Everything {
    fn values(&self) -> [StepValue; 9] {
        let (batches, steps, updates) = (StepCount::Batches, StepCount::Steps, StepCount::Updates);
        [
            StepValue::Number,
            StepValue::Skipped,
            StepValue::Entry { of: updates, every: 2 },
            StepValue::Due { of: batches, first: 3, every: 4 },
            StepValue::Due { of: steps, first: 8, every: u32::MAX },
            StepValue::UpTo { of: updates, last: 2 },
            StepValue::BiasCorrection(0.9),
            StepValue::RootBiasCorrection(0.0),
            StepValue::Number,
        ]
    }

    #[inline(always)]
    fn takes_place<N: Number>(&self, is_skipped: N, values: [N; 9]) -> N {
        (-is_skipped + 1.0 + values[3]).is_positive()
    }

    #[inline(always)]
    fn update<N: Number>(&self, values: [N; 9], [a, b]: [N; 2], [y]: [N; 1]) -> [N; 1] {
        let [first, skipped, entry, due, at_step, early, correction, one, second] = values;
        let sum = first + skipped * 2.0 + entry * 4.0 + due * 8.0 + at_step * 16.0 + early * 32.0;
        let x = a.is_positive().select(b.sqrt() / 2.0, (b + 1.0).recip() - 3.0);
        [sum + x * correction * one - -y / second]
    }
}
