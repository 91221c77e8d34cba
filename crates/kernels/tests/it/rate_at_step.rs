use brisk_kernels::RateAtStep;

use crate::run::*;

#[test]
fn a_rate_is_that_of_the_step_or_the_last() {
    for (step, expected) in [(0, 0.5), (2, 0.125), (3, 0.125), (u32::MAX, 0.125)] {
        let kernel = RateAtStep { n: 3 };
        let given = [words(&[0.5, 0.25, 0.125]), vec![7, step, 0, 0]];
        assert_eq!(twin_floats(&kernel, &given), [expected], "step {step}");
        gpu_equals_twin(&kernel, &given);
    }
}
