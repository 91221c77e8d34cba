use brisk_kernels::ConcatColumns;

use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let kernel = ConcatColumns { n_rows: 2, widths: vec![1, 2] };
    let y = twin_floats(&kernel, &[words(&[1.0, 2.0]), words(&[3.0, 4.0, 5.0, 6.0])]);
    assert_eq!(y, [1.0, 3.0, 4.0, 2.0, 5.0, 6.0], "row by row");
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    // Twelve matrices are more than an adapter must be able to bind at once.
    for (n_rows, widths) in [(1, vec![1]), (63, vec![3, 1]), (65, vec![64, 1, 65]), (129, (1..=12).collect())] {
        let given: Vec<_> = widths.iter().map(|width| words(&random.floats(n_rows * width))).collect();
        gpu_equals_twin(&ConcatColumns { n_rows, widths }, &given);
    }
}
