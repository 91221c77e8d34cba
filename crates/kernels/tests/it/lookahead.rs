use brisk_kernels::{Lookahead, LookaheadPhase};

use crate::random::Random;
use crate::run::*;

const END: Lookahead = Lookahead { n: 2, every: 5, n_decays: 2, end: None, phase: LookaheadPhase::End };

/// The weights and the slow weights after step number `step`, of which `n_skipped` were skipped.
fn after(kernel: Lookahead, [step, skip, n_skipped]: [u32; 3]) -> [Vec<f32>; 2] {
    let given = [words(&[0.5, 0.25]), vec![3, step, skip, n_skipped], words(&[2.0, 4.0]), words(&[10.0, 8.0])];
    gpu_equals_twin(&kernel, &given);
    let results = run_twin(&kernel, &given);
    [floats(&results[0]).to_vec(), floats(&results[1]).to_vec()]
}

#[test]
fn every_fifth_step_pulls_the_weights_back() {
    let unchanged = [vec![2.0, 4.0], vec![10.0, 8.0]];
    assert_eq!(after(END, [3, 0, 0]), unchanged, "the fourth step");
    assert_eq!(after(END, [4, 0, 0]), [vec![6.0, 6.0], vec![6.0, 6.0]], "the fifth, by 0.5");
    assert_eq!(after(END, [9, 0, 0]), [vec![4.0, 5.0], vec![4.0, 5.0]], "the tenth, by 0.25");
    assert_eq!(after(END, [14, 0, 0]), [vec![4.0, 5.0], vec![4.0, 5.0]], "the last decay holds for later updates");
    assert_eq!(after(END, [4, 1, 0]), unchanged, "a step that is skipped");
    assert_eq!(after(END, [4, 0, 1]), unchanged, "the fourth step that was not skipped");
}

#[test]
fn the_run_ends_with_the_slow_weights() {
    let last = Lookahead { end: Some(8), ..END };
    let slow = [vec![10.0, 8.0], vec![10.0, 8.0]];
    assert_eq!(after(last, [6, 0, 0]), [vec![2.0, 4.0], vec![10.0, 8.0]], "the seventh step of eight");
    assert_eq!(after(last, [7, 0, 0]), slow, "the last");
    assert_eq!(after(last, [7, 1, 0]), slow, "the last, which is skipped");
    assert_eq!(after(last, [7, 0, 3]), [vec![6.0, 6.0], vec![6.0, 6.0]], "the last, which is the fifth that was not skipped");
}

#[test]
fn the_slow_weights_start_as_the_weights() {
    let start = Lookahead { phase: LookaheadPhase::Start, ..END };
    assert_eq!(after(start, [0, 0, 0]), [vec![2.0, 4.0], vec![2.0, 4.0]], "before the first step");
    assert_eq!(after(start, [2, 0, 2]), [vec![2.0, 4.0], vec![2.0, 4.0]], "before the first that is not skipped");
    assert_eq!(after(start, [4, 0, 0]), [vec![2.0, 4.0], vec![10.0, 8.0]], "later");
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for n in [1, 65, 1001] {
        let given = vec![words(&[0.3]), vec![0, 9, 0, 0], words(&random.floats(n)), words(&random.floats(n))];
        gpu_equals_twin(&Lookahead { n, n_decays: 1, ..END }, &given);
    }
}
