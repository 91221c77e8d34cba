use super::*;
use crate::gemm::split::Paired as _;

/// Integers whose products and sums are exact in f32.
fn numbers(n: usize, seed: usize) -> Vec<bf16> {
    (0..n).map(|i| bf16::from_f32(((i * 7919 + seed * 104_729) % 17) as f32 - 8.0)).collect()
}

/// The instructions of this machine. Without any, these tests check nothing.
fn available() -> impl Iterator<Item = Bf16Instructions> {
    [Bf16Instructions::Amx, Bf16Instructions::Avx512].into_iter().filter(|instructions| instructions.is_available())
}

/// The product by `instructions` of all four layouts, onto previous values or not.
#[track_caller]
fn check(instructions: Bf16Instructions, [m, n, k]: [usize; 3]) {
    let (rows, cols) = (numbers(m * k, 1), numbers(n * k, 2));
    let transposed = |x: &[bf16], n: usize| -> Vec<bf16> { (0..n * k).map(|i| x[i % n * k + i / n]).collect() };
    let expected =
        |row: usize, col: usize| -> f32 { (0..k).map(|i| rows[row * k + i].to_f32() * cols[col * k + i].to_f32()).sum() };
    for k_is_outer in [[false, false], [false, true], [true, false], [true, true]] {
        let stored = |data, n, k_is_outer| Stored { data, n, stride: if k_is_outer { n } else { k }, k_is_outer };
        let (outer_rows, outer_cols) = (transposed(&rows, m), transposed(&cols, n));
        let a = stored(if k_is_outer[0] { &outer_rows } else { &rows }, m, k_is_outer[0]);
        let b = stored(if k_is_outer[1] { &outer_cols } else { &cols }, n, k_is_outer[1]);
        let mut y = vec![0.5; m * n];
        for onto in [Onto::Sum, Onto::Nothing] {
            let offset = if onto == Onto::Sum { 0.5 } else { 0.0 };
            with_panels(b, &(0..k), Threads::All, |panels| {
                if a.k_is_outer {
                    with_rows(instructions, a, &(0..k), Threads::All, |rows| {
                        bf16::times(instructions, (rows, panels), k, &mut y, onto);
                    });
                } else {
                    panels.times(instructions, Lines::new(a.data, k, m, k), &mut y, onto);
                }
            });
            for (i, y) in y.iter().enumerate() {
                let (row, col) = (i / n, i % n);
                let expected = expected(row, col) + offset;
                assert!(
                    *y == expected,
                    "{instructions:?} [{m}, {n}, {k}], outer {k_is_outer:?}, {onto:?} at [{row}, {col}]: {y}, expected {expected}"
                );
            }
        }
    }
}

#[test]
fn all_layouts_and_edges() {
    for instructions in available() {
        for m in [1, 2, 15, 31, 32, 33, 77] {
            for n in [1, 10, 32, 33, 64, 100] {
                for k in [1, 2, 28, 32, 33, 64, 95] {
                    check(instructions, [m, n, k]);
                }
            }
        }
        check(instructions, [32, 32, 1100]);
        check(instructions, [300, 70, 513]);
    }
}

/// Large operands are packed by several threads.
#[test]
fn packing_by_threads_is_the_same() {
    for instructions in available() {
        check(instructions, [256, 320, 512]);
    }
}

/// Padding is not multiplied with what lies next to an operand.
#[test]
fn infinite_neighbours_stay_outside() {
    for instructions in available() {
        let (m, n, k) = (3, 5, 7);
        let mut a = numbers(m * 2 * k, 1);
        for row in a.chunks_exact_mut(2 * k) {
            row[k..].fill(bf16::INFINITY);
        }
        let b = vec![bf16::ONE; n * k];
        let mut y = vec![f32::NAN; m * n];
        with_panels(Stored { data: &b, n, stride: n, k_is_outer: true }, &(0..k), Threads::All, |panels| {
            panels.times(instructions, Lines::new(&a, 2 * k, m, k), &mut y, Onto::Nothing);
        });
        for (row, y) in y.chunks_exact(n).enumerate() {
            let sum: f32 = a[row * 2 * k..][..k].iter().map(|x| x.to_f32()).sum();
            assert!(y.iter().all(|y| *y == sum), "{instructions:?}: {y:?}, expected {sum}");
        }
    }
}

/// What a product does with numbers that are not finite, as f32 does; subnormal ones count as 0.
#[test]
fn special_values() {
    for instructions in available() {
        let product = |a: f32, b: f32| {
            let (a, b) = ([bf16::from_f32(a); 2], [bf16::from_f32(b), bf16::ZERO]);
            let mut y = [f32::NAN];
            with_panels(Stored { data: &b, n: 1, stride: 2, k_is_outer: false }, &(0..2), Threads::All, |panels| {
                panels.times(instructions, Lines::new(&a, 2, 1, 2), &mut y, Onto::Nothing);
            });
            y[0]
        };
        assert!(product(1.5, 2.0) == 3.0, "{instructions:?}");
        assert!(product(f32::INFINITY, 2.0).is_nan(), "{instructions:?}: its second product is infinity times 0");
        assert!(product(f32::NAN, 1.0).is_nan(), "{instructions:?}");
        assert!(product(2e38, 2.0) == f32::INFINITY, "{instructions:?}: {}", product(2e38, 2.0));
        assert!(product(1e-39, 1e10) == 0.0, "{instructions:?}: {}", product(1e-39, 1e10));
    }
}
