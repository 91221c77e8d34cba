use brisk_kernels::{Adam, AdamGroups, GROUP_LEN, Kernel, Momentum, Sgd, SgdGroups, WeightDecay};

use crate::close::{DEFAULT, Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

/// A step divides by roots of small numbers, each of which the GPU may round with an error of 2.5 ulp.
const STEP: Tolerance = Tolerance { absolute: 2e-6, relative: 2e-5 };

fn sgd(n: usize) -> SgdGroups {
    // The decay is not used.
    SgdGroups { sgd: Sgd { n, n_lr: 2, momentum: 0.5, weight_decay: 1e30, form: Momentum::Nesterov } }
}

/// One after another: half the rate, the full rate with a decay, no step.
fn table(n: usize) -> Words {
    let entries = [[0.5, 0.0], [1.0, 0.1], [-1.0, 0.3]];
    words(&(0..n.div_ceil(GROUP_LEN)).flat_map(|i| entries[i % 3]).collect::<Vec<_>>())
}

fn given(random: &mut Random, n: usize, n_states: usize) -> Vec<Words> {
    let mut given = vec![table(n), words(&random.floats(n)), words(&[0.1, 0.01]), vec![0, 5, 0, 1], words(&random.floats(n))];
    // A mean of squares is not negative.
    given.extend((0..n_states).map(|_| words(&random.floats(n).iter().map(|x| x.abs()).collect::<Vec<_>>())));
    given
}

/// The part of each argument that entry `i` of the table covers; arguments that are not per parameter do not change.
fn part(given: &[Words], i: usize, n: usize) -> Vec<Words> {
    let range = i * GROUP_LEN..n.min((i + 1) * GROUP_LEN);
    given[1..].iter().map(|words| if words.len() == n { words[range.clone()].to_vec() } else { words.clone() }).collect()
}

#[test]
fn each_group_steps_as_alone_with_its_rate_and_decay() {
    let n = 3 * GROUP_LEN + 7;
    let given_sgd = given(&mut Random::new(1), n, 1);
    let given_adam = given(&mut Random::new(2), n, 2);
    for i in 0..4 {
        let entry = &floats(&given_sgd[0])[2 * i..2 * i + 2];
        let len = GROUP_LEN.min(n - i * GROUP_LEN);
        let at_rate = |mut given: Vec<Words>| {
            given[1] = words(&floats(&given[1]).iter().map(|lr| lr * entry[0]).collect::<Vec<_>>());
            given
        };
        let check = |found: Vec<Words>, alone: Vec<Words>, before: &[Words]| {
            for ((found, alone), before) in found.iter().zip(&alone).zip(before) {
                let found = &floats(found)[i * GROUP_LEN..][..len];
                assert_close(&format!("group {i}"), found, if entry[0] < 0.0 { floats(before) } else { floats(alone) }, DEFAULT);
            }
        };
        let alone = Sgd { n: len, weight_decay: entry[1], ..sgd(n).sgd };
        let of_part = part(&given_sgd, i, n);
        check(run_twin(&sgd(n), &given_sgd), run_twin(&alone, &at_rate(of_part.clone())), &of_part[3..]);
        for weight_decay in [WeightDecay::Gradient(entry[1]), WeightDecay::Decoupled(entry[1])] {
            let alone = Adam { weight_decay, ..Adam::new(len, 2) };
            let all = AdamGroups { adam: Adam { n, ..alone } };
            let of_part = part(&given_adam, i, n);
            check(run_twin(&all, &given_adam), run_twin(&alone, &at_rate(of_part.clone())), &of_part[3..]);
        }
    }
}

#[test]
fn a_skipped_step_changes_nothing() {
    let n = 150;
    let mut skipped = given(&mut Random::new(3), n, 2);
    skipped[3][2] = 1;
    let adam = AdamGroups { adam: Adam::new(n, 2) };
    assert_eq!(run_twin(&adam, &skipped), skipped[4..], "parameters, m and v are as they were");
    gpu_equals_twin(&adam, &skipped);
    skipped.pop();
    assert_eq!(run_twin(&sgd(n), &skipped), skipped[4..], "parameters and momentum are as they were");
    gpu_equals_twin(&sgd(n), &skipped);
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(4);
    for n in [1, 63, 64, 65, 1001, 70_003] {
        gpu_equals_twin(&sgd(n), &given(&mut random, n, 1));
        for weight_decay in [WeightDecay::Gradient(0.0), WeightDecay::Decoupled(0.0)] {
            let kernel = AdamGroups { adam: Adam { weight_decay, ..Adam::new(n, 2) } };
            gpu_equals_twin_within(&kernel, &given(&mut random, n, 2), STEP);
        }
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let n = 70_001;
    same_bits_on_any_pool(&sgd(n), &given(&mut Random::new(5), n, 1));
    same_bits_on_any_pool(&AdamGroups { adam: Adam::new(n, 2) }, &given(&mut Random::new(6), n, 2));
}

#[test]
fn what_makes_no_sense_is_refused_as_without_groups() {
    let kernel = AdamGroups { adam: Adam { beta1: 1.0, ..Adam::new(1, 1) } };
    assert!(kernel.check().is_err(), "it would divide by 1 - 1");
    assert!(sgd(0).check().is_err(), "no parameters");
}
