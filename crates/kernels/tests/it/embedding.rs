use brisk_kernels::{Embedding, EmbeddingGrad};

use crate::close::{GRADIENT, Tolerance};
use crate::random::Random;
use crate::run::*;

const SMALL: Embedding = Embedding { n: 4, n_entries: 3, dim: 2, n_index_cols: 2, index_col: 1 };

#[test]
fn twin_equals_hand_worked_numbers() {
    let weight = words(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let index = vec![9, 2, 9, 0, 9, 2, 9, 1];
    let given = [weight, index.clone()];
    assert_eq!(twin_floats(&SMALL, &given), [5.0, 6.0, 1.0, 2.0, 5.0, 6.0, 3.0, 4.0], "the second column's codes");
    gpu_equals_twin(&SMALL, &given);

    let grad_y = words(&[1.0, 10.0, 2.0, 20.0, 4.0, 40.0, 8.0, 80.0]);
    let grad = |padding| EmbeddingGrad { forward: SMALL, padding };
    let given = [grad_y, index];
    assert_eq!(twin_floats(&grad(None), &given), [2.0, 20.0, 8.0, 80.0, 5.0, 50.0], "rows of an entry are added");
    assert_eq!(twin_floats(&grad(Some(2)), &given), [2.0, 20.0, 8.0, 80.0, 0.0, 0.0], "the padding entry gets nothing");
    gpu_equals_twin(&grad(None), &given);
    gpu_equals_twin(&grad(Some(2)), &given);
}

#[test]
fn a_code_beyond_the_table_is_read_and_trained_as_code_0() {
    let kernel = Embedding { n: 3, n_entries: 2, dim: 1, n_index_cols: 1, index_col: 0 };
    let index = vec![1, 2, u32::MAX];
    let given = [words(&[5.0, 7.0]), index.clone()];
    assert_eq!(twin_floats(&kernel, &given), [7.0, 5.0, 5.0]);
    gpu_equals_twin(&kernel, &given);
    let given = [words(&[1.0, 2.0, 4.0]), index];
    let grad = EmbeddingGrad { forward: kernel, padding: None };
    assert_eq!(twin_floats(&grad, &given), [6.0, 1.0]);
    gpu_equals_twin(&grad, &given);
}

/// Codes, with low ones more frequent, and some beyond the table.
fn index(random: &mut Random, kernel: &Embedding) -> Words {
    let mut code = || random.below(kernel.n_entries as u32 + 1);
    (0..kernel.n * kernel.n_index_cols).map(|_| code().min(code())).collect()
}

/// Tables with few entries, whose gradient is computed in blocks of rows, with 64 and 65, the limit, and with many, where it
/// follows chains.
const SIZES: [(usize, usize, usize); 8] =
    [(1, 1, 1), (63, 2, 3), (64, 64, 1), (130, 64, 5), (130, 65, 5), (257, 100, 17), (300, 1000, 2), (5, 70, 33)];

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for (n, n_entries, dim) in SIZES {
        let kernel = Embedding { n, n_entries, dim, n_index_cols: 3, index_col: n % 3 };
        let index = index(&mut random, &kernel);
        gpu_equals_twin(&kernel, &[words(&random.floats(n_entries * dim)), index.clone()]);
        let grad_y = words(&random.floats(n * dim));
        for padding in [None, Some(0), Some(n_entries - 1)] {
            let grad = EmbeddingGrad { forward: kernel, padding };
            gpu_equals_twin_within(&grad, &[grad_y.clone(), index.clone()], Tolerance::of_sum(n));
        }
    }
}

#[test]
fn one_entry_that_has_all_rows() {
    let mut random = Random::new(4);
    for n_entries in [10, 100] {
        let forward = Embedding { n: 500, n_entries, dim: 2, n_index_cols: 1, index_col: 0 };
        let given = [words(&random.floats(1000)), vec![7; 500]];
        gpu_equals_twin_within(&EmbeddingGrad { forward, padding: None }, &given, Tolerance::of_sum(500));
    }
}

#[test]
fn gradient_equals_a_finite_difference() {
    let mut random = Random::new(2);
    for (n, n_entries, dim) in SIZES {
        let kernel = Embedding { n, n_entries, dim, n_index_cols: 1, index_col: 0 };
        let (index, weight, grad_y) = (index(&mut random, &kernel), random.floats(n_entries * dim), random.floats(n * dim));
        let direction = random.floats(weight.len());
        let loss = |weight: &[f32]| dot(&twin_floats(&kernel, &[words(weight), index.clone()]), &grad_y);
        let expected = slope_along(&weight, &direction, 0.01, loss);
        let found = twin_floats(&EmbeddingGrad { forward: kernel, padding: None }, &[words(&grad_y), index.clone()]);
        let found = dot(&found, &direction);
        assert!(GRADIENT.holds(found, expected), "{kernel:?}: {found} != {expected}");
    }
}

#[test]
fn the_gpu_repeats_itself_to_the_bit() {
    let mut random = Random::new(5);
    for n_entries in [30, 300] {
        let forward = Embedding { n: 2000, n_entries, dim: 3, n_index_cols: 1, index_col: 0 };
        let given = [words(&random.floats(6000)), index(&mut random, &forward)];
        let kernel = EmbeddingGrad { forward, padding: None };
        let Some(mut gpu) = crate::gpu::gpu() else { return };
        let first = run_gpu(&mut gpu, &kernel, &given);
        assert!((0..3).all(|_| run_gpu(&mut gpu, &kernel, &given) == first), "{kernel:?}: a second run has other bits");
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    for (n, n_entries, dim) in [(8192, 20, 9), (8192, 5000, 40)] {
        let forward = Embedding { n, n_entries, dim, n_index_cols: 1, index_col: 0 };
        let given = [words(&random.floats(n * dim)), index(&mut random, &forward)];
        same_bits_on_any_pool(&EmbeddingGrad { forward, padding: Some(0) }, &given);
    }
}
