//! The kernel that applies a rule to each element, with a rule that descends and one that reads every number of the step.

use brisk_kernels::*;

use crate::random::Random;
use crate::rules::{Descent, Everything};
use crate::run::*;

fn update(n: usize) -> Update<Descent, 2, 1, 2> {
    Update::new("descent", Descent { decay: 0.1 }, n).table_len(2)
}

fn given(random: &mut Random, n: usize) -> Vec<Words> {
    vec![words(&random.floats(n)), words(&[0.1, 0.01]), vec![5, 5, 0, 0], words(&random.floats(n)), words(&random.floats(n))]
}

#[test]
fn twin_equals_hand_worked_numbers() {
    // u = 0.5 · 2 + (1 + 0.1 · 10) = 3, and 0.5 · 4 - 1 = 1.
    let given = [words(&[1.0, -1.0]), words(&[0.5, 0.1]), vec![7, 7, 0, 0], words(&[10.0, 0.0]), words(&[2.0, 4.0])];
    let [params, momentum]: [Words; 2] = run_twin(&update(2), &given).try_into().expect("two results");
    assert_eq!((floats(&params), floats(&momentum)), (&[9.7, -0.1][..], &[3.0, 1.0][..]));
}

#[test]
fn a_skipped_step_changes_nothing() {
    let mut skipped = given(&mut Random::new(3), 65);
    skipped[2][2] = 1;
    assert_eq!(run_twin(&update(65), &skipped), skipped[3..], "parameters and momentum are as they were");
    gpu_equals_twin(&update(65), &skipped);
}

#[test]
fn numbers_of_the_step_are_exact() {
    #[track_caller]
    fn check(state: [u32; 4], expected: f32) {
        let given = [vec![1.0], vec![4.0], vec![0.5], vec![2.0], vec![0.25, 0.125]].map(|values| words(&values));
        let [a, b, first, second, table] = given;
        let given = [a, b, first, second, table, state.to_vec(), words(&[1.0])];
        let kernel = Update::new("everything", Everything, 1).table_len(2);
        let found = twin_floats(&kernel, &given)[0];
        assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{state:?} gives {found}, expected {expected}");
        gpu_equals_twin(&kernel, &given);
    }
    // 0.5 + 4 · entry + 32 for updates 1 and 2 + 1 / (1 - 0.9^t) + 1 / 2.
    check([0, 0, 0, 0], 0.5 + 1.0 + 32.0 + 10.0 + 0.5);
    check([0, 1, 0, 0], 0.5 + 1.0 + 32.0 + 1.0 / 0.19 + 0.5);
    check([1, 2, 0, 0], 0.5 + 0.5 + 1.0 / 0.271 + 0.5);
    // The third batch, and the seventh.
    check([2, 2, 0, 0], 0.5 + 0.5 + 8.0 + 1.0 / 0.271 + 0.5);
    check([6, 2, 0, 0], 0.5 + 0.5 + 8.0 + 1.0 / 0.271 + 0.5);
    // The eighth step, of which five were skipped; and with more steps than an f32 can count.
    check([0, 7, 0, 5], 0.5 + 0.5 + 16.0 + 1.0 / 0.271 + 0.5);
    check([u32::MAX - 1 - (1 << 30), u32::MAX - 1, 0, u32::MAX - 3], 0.5 + 0.5 + 1.0 / 0.271 + 0.5 + 8.0);
    // A skipped step takes place if the batch is due, as the rule says.
    check([2, 2, 1, 0], 0.5 + 2.0 + 0.5 + 8.0 + 1.0 / 0.271 + 0.5);
    check([1, 2, 1, 0], 1.0);
}

/// One after another: half the rate, the full rate with a decay, no step.
fn table(n: usize) -> Words {
    let entries = [[0.5, 0.0], [1.0, 0.1], [-1.0, 0.3]];
    words(&(0..n.div_ceil(GROUP_LEN)).flat_map(|i| entries[i % 3]).collect::<Vec<_>>())
}

#[test]
fn each_group_steps_with_its_rate_and_decay() {
    let n = 3 * GROUP_LEN + 7;
    let mut of_all = given(&mut Random::new(1), n);
    of_all.insert(3, table(n));
    let kernel = Update::new("descent", Descent { decay: 0.3 }, n).table_len(2).grouped();
    let found = run_twin(&kernel, &of_all);
    gpu_equals_twin(&kernel, &of_all);
    for (i, (rate, decay)) in [(0.5, 0.0), (1.0, 0.1), (-1.0, 0.3), (0.5, 0.0)].into_iter().enumerate() {
        let range = i * GROUP_LEN..n.min((i + 1) * GROUP_LEN);
        let part = |all: &Words| all[range.clone()].to_vec();
        let rates = words(&[0.1 * rate, 0.01 * rate]);
        let own = [part(&of_all[0]), rates, of_all[2].clone(), part(&of_all[4]), part(&of_all[5])];
        let only = Update::new("descent", Descent { decay }, range.len()).table_len(2);
        let expected = if rate < 0.0 { own[3..].to_vec() } else { run_twin(&only, &own) };
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(part(found), *expected, "group {i}");
        }
    }
}

#[test]
fn gpu_agrees_and_bits_do_not_depend_on_threads() {
    let mut random = Random::new(4);
    for n in [1, 63, 64, 65, 1001, 70_003] {
        let of_all = given(&mut random, n);
        gpu_equals_twin(&update(n), &of_all);
        same_bits_on_any_pool(&update(n), &of_all);
        let mut grouped = of_all;
        grouped.insert(3, table(n));
        gpu_equals_twin(&update(n).grouped(), &grouped);
        same_bits_on_any_pool(&update(n).grouped(), &grouped);
        let positive = words(&random.floats(n).iter().map(|x| x.abs()).collect::<Vec<_>>());
        let numbers = [words(&[0.5]), words(&[2.0]), words(&[0.25, 0.125]), vec![2, 7, 0, 4]];
        let everything = [vec![words(&random.floats(n)), positive], numbers.to_vec(), vec![words(&random.floats(n))]].concat();
        let kernel = Update::new("everything", Everything, n).table_len(2);
        gpu_equals_twin(&kernel, &everything);
        same_bits_on_any_pool(&kernel, &everything);
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    #[track_caller]
    fn refused(kernel: &dyn Kernel, expected: &str) {
        let error = kernel.check().expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
    refused(&Update::new("descent", Descent { decay: 0.1 }, 0), "descent: n is 0");
    refused(&update(4).table_len(0), "table_len is 0");
    refused(&Update::new("descent", Descent { decay: -1.0 }, 4), "descent: decay = -1 is not supported");
    refused(&Update::new("never", Never, 4), "every is 0");
    refused(&Update::new("wide", Wide, 4), "9 arguments");
}

/// A distance of 0.
#[derive(Debug, Clone)]
struct Never;

impl Rule<1, 0, 1> for Never {
    fn values(&self) -> [StepValue; 1] {
        [StepValue::Due { of: StepCount::Steps, first: 1, every: 0 }]
    }

    #[inline(always)]
    fn update<N: Number>(&self, [due]: [N; 1], []: [N; 0], [y]: [N; 1]) -> [N; 1] {
        [due + y]
    }
}

/// Too many arguments.
#[derive(Debug, Clone)]
struct Wide;

impl Rule<0, 0, 8> for Wide {
    fn values(&self) -> [StepValue; 0] {
        []
    }

    #[inline(always)]
    fn update<N: Number>(&self, []: [N; 0], []: [N; 0], y: [N; 8]) -> [N; 8] {
        y
    }
}
