use brisk_kernels::GatherCategories;

use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let whole = GatherCategories { first_row: 0, n_table_rows: 2, n_cols: 2, n: 3 };
    let rows = vec![1, 2, 0];
    let given = [vec![1, 2, 3, 4], rows.clone()];
    assert_eq!(run_twin(&whole, &given)[0], [3, 4, 0, 0, 1, 2], "row 2 is not in this window");
    gpu_equals_twin(&whole, &given);

    let second = GatherCategories { first_row: 2, ..whole };
    let given = [vec![5, 6, 7, 8], rows, vec![9; 6]];
    assert_eq!(run_twin(&second, &given)[0], [9, 9, 5, 6, 9, 9], "the rows of other windows are left");
    gpu_equals_twin(&second, &given);
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n_table_rows, n_cols, n) in [(1, 1, 1), (10, 1, 63), (5, 4, 16), (7, 13, 5), (1000, 3, 257)] {
        let kernel = GatherCategories { first_row: 0, n_table_rows, n_cols, n };
        let table = (0..n_table_rows * n_cols).map(|_| random.next() as u32).collect();
        let rows = (0..n).map(|_| random.below(n_table_rows as u32)).collect();
        gpu_equals_twin(&kernel, &[table, rows]);
    }
}
