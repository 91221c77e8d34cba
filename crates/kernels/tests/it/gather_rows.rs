use brisk_kernels::GatherRows;

use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let kernel = GatherRows { n_table_rows: 3, n_cols: 2, n: 2 };
    let table = words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = twin_floats(&kernel, &[table, vec![2, 0], words(&[1.0, 2.0]), words(&[0.5, 2.0])]);
    assert_eq!(y, [2.0, 8.0, 0.0, 0.0], "(row - mean) / std");
}

fn given(random: &mut Random, kernel: GatherRows) -> [Words; 4] {
    let GatherRows { n_table_rows, n_cols, n } = kernel;
    let rows = (0..n).map(|_| random.below(n_table_rows as u32)).collect();
    let inv_std: Vec<f32> = random.floats(n_cols).iter().map(|x| x + 1.5).collect();
    [words(&random.floats(n_table_rows * n_cols)), rows, words(&random.floats(n_cols)), words(&inv_std)]
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n_table_rows, n_cols, n) in [(1, 1, 1), (10, 1, 63), (5, 4, 16), (7, 13, 5), (1000, 28, 257)] {
        let kernel = GatherRows { n_table_rows, n_cols, n };
        gpu_equals_twin(&kernel, &given(&mut random, kernel));
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let kernel = GatherRows { n_table_rows: 500, n_cols: 28, n: 8192 };
    same_bits_on_any_pool(&kernel, &given(&mut Random::new(2), kernel));
}
