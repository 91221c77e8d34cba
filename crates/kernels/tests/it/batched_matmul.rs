use brisk_kernels::expr::{Activation, Expr};
use brisk_kernels::{Adapter, Dispatch, Epilogue, Error, Kernel, Matmul, MatmulFamily, Signature, Transpose, TwinArgs};

use crate::close::{Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

const TRANSPOSES: [Transpose; 4] = [Transpose::None, Transpose::A, Transpose::B, Transpose::Both];

#[test]
fn twin_equals_hand_worked_numbers() {
    let (a, b) = (words(&[1.0, 2.0, 3.0, 4.0]), words(&[10.0, 1.0, 1.0, 10.0]));
    let kernel = Matmul { n_batch: 2, m: 1, n: 1, k: 2, transpose: Transpose::None, epilogue: Epilogue::none() };
    assert_eq!(twin_floats(&kernel, &[a.clone(), b.clone()]), [12.0, 43.0], "a row times a column, twice");
    let kernel = Matmul { n_batch: 2, m: 2, n: 2, k: 1, transpose: Transpose::None, epilogue: Epilogue::none() };
    assert_eq!(twin_floats(&kernel, &[a, b]), [10.0, 1.0, 20.0, 2.0, 3.0, 30.0, 4.0, 40.0], "a column times a row, twice");
}

#[test]
fn it_is_the_product_of_each_pair_and_gpu_agrees() {
    let mut random = Random::new(1);
    for transpose in TRANSPOSES {
        for [n_batch, m, n, k] in [[1, 1, 1, 1], [3, 5, 7, 4], [2, 31, 33, 9], [5, 32, 32, 32], [2, 65, 3, 70], [70, 2, 3, 1]] {
            let kernel = Matmul { n_batch, m, n, k, transpose, epilogue: Epilogue::none() };
            let given = [words(&random.floats(n_batch * m * k)), words(&random.floats(n_batch * k * n))];
            let one = Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::none() };
            let pairs = given[0].chunks_exact(m * k).zip(given[1].chunks_exact(k * n));
            let expected: Vec<f32> = pairs.flat_map(|(a, b)| twin_floats(&one, &[a.to_vec(), b.to_vec()])).collect();
            assert_close(&format!("{kernel:?}"), &twin_floats(&kernel, &given), &expected, Tolerance::of_sum(k));
            gpu_equals_twin_within(&kernel, &given, Tolerance::of_sum(k));
        }
    }
}

#[test]
fn each_pair_is_ended_by_its_part_of_the_operand() {
    let mut random = Random::new(4);
    let scaled_and_masked = Epilogue::with_matrix(Expr::input(0) * 0.25 + Expr::input(1));
    for epilogue in [Epilogue::bias(&Activation::gelu()), scaled_and_masked] {
        for [n_batch, m, n, k] in [[3, 5, 7, 4], [2, 1, 8, 9], [4, 7, 1, 5], [3, 6, 4, 1], [2, 70, 40, 30]] {
            let kernel = Matmul { n_batch, m, n, k, transpose: Transpose::B, epilogue: epilogue.clone() };
            let one = Matmul { n_batch: 1, ..kernel.clone() };
            let [a, b] = [n_batch * m * k, n_batch * k * n].map(|len| random.floats(len));
            let operand = random.floats(kernel.args()[2].len);
            let expected = (0..n_batch).flat_map(|i| {
                let pair = [&a[i * m * k..(i + 1) * m * k], &b[i * k * n..(i + 1) * k * n]];
                let operand = if operand.len() == n { &operand[..] } else { &operand[i * m * n..(i + 1) * m * n] };
                twin_floats(&one, &[words(pair[0]), words(pair[1]), words(operand)])
            });
            let (expected, given) = (expected.collect::<Vec<f32>>(), [words(&a), words(&b), words(&operand)]);
            assert_close(&format!("{kernel:?}"), &twin_floats(&kernel, &given), &expected, Tolerance::of_sum(k));
            gpu_equals_twin_within(&kernel, &given, Tolerance::of_sum(k));
            if m * n * k < 1000 {
                gpu_equals_twin_within(&Tiled(kernel), &given, Tolerance::of_sum(k));
            }
        }
    }
}

/// The products with tiles, whatever the adapter.
#[derive(Debug)]
struct Tiled(Matmul);

impl Kernel for Tiled {
    fn signature(&self) -> Signature {
        self.0.signature()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.0.dispatches_by(MatmulFamily::Tiled, adapter)
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.0.twin(args);
    }
}

/// Barriers are extremely slow on a software adapter, so there are few and small products.
#[test]
fn tiled_equals_twin() {
    let mut random = Random::new(3);
    for transpose in TRANSPOSES {
        for [n_batch, m, n, k] in [[1, 4, 4, 4], [3, 36, 28, 20], [2, 8, 40, 12], [2, 5, 7, 3]] {
            let kernel = Matmul { n_batch, m, n, k, transpose, epilogue: Epilogue::none() };
            let given = [words(&random.floats(n_batch * m * k)), words(&random.floats(n_batch * k * n))];
            gpu_equals_twin_within(&Tiled(kernel), &given, Tolerance::of_sum(k));
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(2);
    for [n_batch, m, n, k] in [[40, 20, 30, 25], [3, 130, 140, 150]] {
        let kernel = Matmul { n_batch, m, n, k, transpose: Transpose::B, epilogue: Epilogue::none() };
        same_bits_on_any_pool(&kernel, &[words(&random.floats(n_batch * m * k)), words(&random.floats(n_batch * k * n))]);
    }
}

/// A dispatch has at most 65535 workgroups in one dimension.
#[test]
fn more_matrices_than_a_dimension_has_workgroups_equal_twin() {
    let mut random = Random::new(3);
    let kernel = Matmul { n_batch: 70_000, m: 1, n: 2, k: 3, transpose: Transpose::None, epilogue: Epilogue::none() };
    gpu_equals_twin_within(
        &kernel,
        &[words(&random.floats(70_000 * 3)), words(&random.floats(70_000 * 6))],
        Tolerance::of_sum(3),
    );
}

/// Of which sums that are equal are computed once.
#[test]
fn a_product_of_a_matrix_with_itself_has_the_bits_of_one_with_its_copy() {
    let mut random = Random::new(5);
    for (n_batch, n, k, transpose) in
        [(1, 37, 9, Transpose::B), (3, 256, 70, Transpose::A), (1, 300, 128, Transpose::B), (2, 256, 900, Transpose::A)]
    {
        let kernel = Matmul { n_batch, m: n, n, k, transpose, epilogue: Epilogue::none() };
        let x = words(&random.floats(n_batch * n * k));
        let args = kernel.args();
        let mut y = words(&vec![f32::NAN; n_batch * n * n]);
        let mut twin_args = TwinArgs::new(&args);
        (0..2).for_each(|_| twin_args.push_read(bytemuck::cast_slice(&x)));
        twin_args.push_write(bytemuck::cast_slice_mut(&mut y));
        kernel.twin(&mut twin_args);
        drop(twin_args);
        let of_copies = run_twin(&kernel, &[x.clone(), x]).remove(0);
        assert_eq!(y, of_copies, "{n_batch} of {n} x {k}, {transpose:?}");
    }
}
