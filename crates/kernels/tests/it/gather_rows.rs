use brisk_kernels::{DType, GatherRows};

use crate::random::Random;
use crate::run::*;

const WHOLE: GatherRows = GatherRows { dtype: DType::F32, first_row: 0, n_table_rows: 3, n_cols: 2, n: 2 };

/// Bytes in words, the first in the lowest bits, the last word padded with bytes that are not elements.
fn packed(bytes: &[u8]) -> Words {
    bytes
        .chunks(4)
        .map(|four| {
            (0..4).fold(0xEEEE_EEEE, |word, i| match four.get(i) {
                Some(&byte) => word & !(0xFF << (8 * i)) | u32::from(byte) << (8 * i),
                None => word,
            })
        })
        .collect()
}

#[test]
fn twin_equals_hand_worked_numbers() {
    let table = words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let y = twin_floats(&WHOLE, &[table, vec![2, 0], words(&[1.0, 2.0]), words(&[0.5, 2.0])]);
    assert_eq!(y, [2.0, 8.0, 0.0, 0.0], "(row - mean) / std");
}

#[test]
fn twin_of_bytes_equals_hand_worked_numbers() {
    let kernel = GatherRows { dtype: DType::U8, ..WHOLE };
    let y = twin_floats(&kernel, &[packed(&[1, 2, 255, 0, 5, 128]), vec![1, 2], words(&[55.0, 2.0]), words(&[0.5, 2.0])]);
    assert_eq!(y, [100.0, -4.0, -25.0, 252.0], "(row - mean) / std of 0 to 255");
}

#[test]
fn a_window_gives_its_own_rows_and_the_first_zeros_for_others() {
    let (mean, inv_std) = (words(&[1.0, 0.0]), words(&[1.0, 1.0]));
    let rows = vec![4, 0];
    let first = GatherRows { n_table_rows: 2, ..WHOLE };
    let given = [words(&[1.0, 2.0, 3.0, 4.0]), rows.clone(), mean.clone(), inv_std.clone()];
    assert_eq!(twin_floats(&first, &given), [0.0, 0.0, 0.0, 2.0], "row 4 is not in the first window");
    gpu_equals_twin(&first, &given);

    let second = GatherRows { first_row: 2, ..WHOLE };
    let given = [words(&[5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), rows, mean, inv_std, words(&[-1.0, -2.0, -3.0, -4.0])];
    assert_eq!(twin_floats(&second, &given), [8.0, 10.0, -3.0, -4.0], "row 0 is left as it was");
    gpu_equals_twin(&second, &given);
}

fn given(random: &mut Random, kernel: GatherRows) -> Vec<Words> {
    let GatherRows { dtype, first_row, n_table_rows, n_cols, n } = kernel;
    // Rows before, in and after the window.
    let end = (first_row + n_table_rows) as u32;
    let rows = (0..n).map(|_| random.below(if first_row == 0 { end } else { end + 5 })).collect();
    let inv_std: Vec<f32> = random.floats(n_cols).iter().map(|x| x + 1.5).collect();
    let table = match dtype {
        DType::U8 => packed(&(0..n_table_rows * n_cols).map(|_| random.below(256) as u8).collect::<Vec<_>>()),
        _ => words(&random.floats(n_table_rows * n_cols)),
    };
    let mut given = vec![table, rows, words(&random.floats(n_cols)), words(&inv_std)];
    if first_row > 0 {
        given.push(words(&random.floats(n * n_cols)));
    }
    given
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for dtype in [DType::F32, DType::U8] {
        for (first_row, n_table_rows, n_cols, n) in
            [(0, 1, 1, 1), (0, 10, 1, 63), (0, 5, 4, 16), (3, 7, 13, 5), (0, 1000, 28, 257), (11, 100, 3, 64)]
        {
            let kernel = GatherRows { dtype, first_row, n_table_rows, n_cols, n };
            gpu_equals_twin(&kernel, &given(&mut random, kernel));
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let kernel = GatherRows { dtype: DType::F32, first_row: 0, n_table_rows: 500, n_cols: 28, n: 8192 };
    same_bits_on_any_pool(&kernel, &given(&mut Random::new(2), kernel));
}
