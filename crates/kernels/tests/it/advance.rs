use brisk_kernels::Advance;

use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    assert_eq!(run_twin(&Advance, &[vec![4, 9, 0, 7]]), [vec![5, 10, 0, 7]], "batch and step move on");
    assert_eq!(
        run_twin(&Advance, &[vec![4, 9, 1, 7]]),
        [vec![5, 10, 0, 8]],
        "a step that was skipped is counted, and is no more"
    );
    assert_eq!(run_twin(&Advance, &[vec![u32::MAX, 0, 0, 0]]), [vec![0, 1, 0, 0]], "it wraps, as on the GPU");
}

#[test]
fn gpu_agrees() {
    gpu_equals_twin(&Advance, &[vec![4, 9, 0, 7]]);
    gpu_equals_twin(&Advance, &[vec![4, 9, 1, 7]]);
    gpu_equals_twin(&Advance, &[vec![u32::MAX, 0, 0, 0]]);
}
