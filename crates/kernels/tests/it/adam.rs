use brisk_kernels::{Adam, Kernel, WeightDecay};

use crate::close::{Tolerance, assert_close};
use crate::random::Random;
use crate::run::*;

/// A step divides by roots of small numbers, each of which the GPU may round with an error of 2.5 ulp.
const STEP: Tolerance = Tolerance { absolute: 2e-6, relative: 2e-5 };

/// Inputs of a step: gradients, learning rates, state, parameters, `m`, `v`.
fn given(random: &mut Random, n: usize, lr: &[f32], state: [u32; 4]) -> Vec<Words> {
    let v: Vec<f32> = random.floats(n).iter().map(|v| v * v).collect();
    vec![words(&random.floats(n)), words(lr), state.to_vec(), words(&random.floats(n)), words(&random.floats(n)), words(&v)]
}

#[test]
fn first_step_has_the_size_of_the_learning_rate() {
    let kernel = Adam::new(3, 1);
    let given = [words(&[0.5, -2.0, 0.0]), words(&[0.1]), vec![0; 4], words(&[1.0, 1.0, 1.0]), vec![0; 3], vec![0; 3]];
    let [params, m, v]: [Words; 3] = run_twin(&kernel, &given).try_into().expect("three results");
    // m̂ = g, v̂ = g²: the step is lr · sign(g).
    assert_close("params", floats(&params), &[0.9, 1.1, 1.0], STEP);
    assert_close("m", floats(&m), &[0.05, -0.2, 0.0], STEP);
    assert_close("v", floats(&v), &[0.000_25, 0.004, 0.0], STEP);
}

#[test]
fn twin_equals_the_paper_in_f64() {
    let mut random = Random::new(1);
    let n = 50;
    for weight_decay in [WeightDecay::Gradient(0.0), WeightDecay::Gradient(0.1), WeightDecay::Decoupled(0.1)] {
        let kernel = Adam { weight_decay, ..Adam::new(n, 2) };
        let start = random.floats(n);
        let mut state = [words(&start), vec![0; n], vec![0; n]];
        let (mut p, mut m, mut v) = (start.iter().map(|x| f64::from(*x)).collect::<Vec<_>>(), vec![0.0; n], vec![0.0; n]);
        for step in 0..20_u32 {
            let g = random.floats(n);
            let lr = [0.01_f32, 0.02];
            let given = [words(&g), words(&lr), vec![step, step, 0, 0], state[0].clone(), state[1].clone(), state[2].clone()];
            state = run_twin(&kernel, &given).try_into().expect("three results");
            let (lr, t) = (f64::from(lr[step.min(1) as usize]), f64::from(step + 1));
            let (b1, b2) = (f64::from(kernel.beta1), f64::from(kernel.beta2));
            for i in 0..n {
                let mut g = f64::from(g[i]);
                match weight_decay {
                    WeightDecay::Gradient(decay) => g += f64::from(decay) * p[i],
                    WeightDecay::Decoupled(decay) => p[i] -= lr * f64::from(decay) * p[i],
                }
                m[i] = b1 * m[i] + (1.0 - b1) * g;
                v[i] = b2 * v[i] + (1.0 - b2) * g * g;
                let (m_hat, v_hat) = (m[i] / (1.0 - b1.powf(t)), v[i] / (1.0 - b2.powf(t)));
                p[i] -= lr * m_hat / (v_hat.sqrt() + f64::from(kernel.eps));
            }
        }
        let expected: Vec<f32> = p.iter().map(|x| *x as f32).collect();
        assert_close(&format!("{weight_decay:?}"), floats(&state[0]), &expected, STEP);
    }
}

#[test]
fn a_skipped_step_changes_nothing_and_does_not_count() {
    let mut random = Random::new(4);
    let kernel = Adam::new(65, 2);
    let skipped = given(&mut random, 65, &[0.1, 0.2], [1, 5, 1, 2]);
    assert_eq!(run_twin(&kernel, &skipped), skipped[3..], "parameters, m and v are as they were");
    gpu_equals_twin(&kernel, &skipped);
    // The next step is the 5th, since 3 of 7 were skipped.
    let (mut after, mut unscaled) = (skipped.clone(), skipped);
    after[2] = vec![1, 7, 0, 3];
    unscaled[2] = vec![1, 4, 0, 0];
    assert_eq!(run_twin(&kernel, &after), run_twin(&kernel, &unscaled), "the bias is corrected for the steps that were taken");
    gpu_equals_twin_within(&kernel, &after, STEP);
}

#[test]
fn gpu_agrees() {
    let mut random = Random::new(2);
    for n in [1, 63, 64, 65, 1001, 70_003] {
        let kernel = Adam { weight_decay: WeightDecay::Decoupled(0.01), ..Adam::new(n, 3) };
        gpu_equals_twin_within(&kernel, &given(&mut random, n, &[0.1, 0.01, 0.001], [1, 6, 0, 0]), STEP);
    }
    for (batch, step) in [(0, 0), (9, 9), (9, 300), (9, 100_000)] {
        let kernel = Adam { weight_decay: WeightDecay::Gradient(0.01), ..Adam::new(65, 3) };
        gpu_equals_twin_within(&kernel, &given(&mut random, 65, &[0.1, 0.01, 0.001], [batch, step, 0, 0]), STEP);
    }
}

#[test]
fn bits_do_not_depend_on_threads() {
    let mut random = Random::new(3);
    let n = 139_265;
    same_bits_on_any_pool(&Adam::new(n, 1), &given(&mut random, n, &[0.01], [0, 4, 0, 0]));
}

#[test]
fn a_decay_of_one_is_refused() {
    let error = Adam { beta2: 1.0, ..Adam::new(1, 1) }.check().expect_err("it would divide by 1 - 1");
    assert_eq!(error.to_string(), "adam: beta2 = 1 is not supported, expected a number from 0 to below 1");
}
