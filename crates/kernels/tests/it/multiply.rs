use brisk_kernels::Multiply;

use crate::random::Random;
use crate::run::*;

#[test]
fn twin_equals_hand_worked_numbers() {
    let y = twin_floats(&Multiply { n: 3 }, &[words(&[1.0, 2.0, -3.0]), words(&[0.5, -2.0, 3.5])]);
    assert_eq!(y, [0.5, -4.0, -10.5], "a b");
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(1);
    for n in [1, 63, 64, 65, 1001, 70_003] {
        gpu_equals_twin(&Multiply { n }, &[words(&random.floats(n)), words(&random.floats(n))]);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(2);
    same_bits_on_any_pool(&Multiply { n: 50_001 }, &[words(&random.floats(50_001)), words(&random.floats(50_001))]);
}
