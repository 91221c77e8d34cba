//! Steps computed by hand.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{
    Adam, Error, Init, Lookahead, Momentum, Optimizer, Parameters, ParametersBuilder, Schedule, Scheduled, Sgd, StepInputs,
    WeightDecay,
};

/// The value of one parameter after each step, starting at 1, with the given gradients; the learning rate is 0.1.
fn steps(optimizer: impl Fn(&Parameters) -> Box<dyn Optimizer>, grads: &[f32]) -> Result<Vec<f32>, Error> {
    let mut builder = ParametersBuilder::new();
    builder.add("p", &[1], Init::Constant(1.0));
    let params = builder.build(0);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    optimizer(&params).record(&graph, &params, &inputs);
    graph.advance(&inputs.state);
    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[0.1_f32])?;
    let step = |&grad: &f32| {
        device.write_at(params.grads(), 0, &[grad])?;
        executable.run(1)?;
        Ok(device.read::<f32>(params.values())?[0])
    };
    grads.iter().map(step).collect()
}

#[track_caller]
fn check(optimizer: impl Fn(&Parameters) -> Box<dyn Optimizer>, grads: &[f32], expected: &[f32]) {
    let found = steps(optimizer, grads).expect("the step can be recorded and run");
    let are_close = found.iter().zip(expected).all(|(a, b)| (a - b).abs() <= 1e-6);
    assert!(are_close && found.len() == expected.len(), "the parameter went {found:?}, expected {expected:?}");
}

#[test]
fn adams_first_step_is_the_learning_rate_whatever_the_gradient() {
    for grad in [0.5, 0.02, 300.0] {
        check(|params| Box::new(Adam::new(params)), &[grad], &[0.9]);
        check(|params| Box::new(Adam::new(params)), &[-grad], &[1.1]);
    }
}

#[test]
fn adam_remembers() {
    // m = 0.9·0.05 - 0.1·0.25 = 0.02, v = 0.999·0.00025 + 0.001·0.0625 = 0.00031225;
    // 0.9 - 0.1 · (0.02 / 0.19) / √(0.00031225 / 0.001999) = 0.8733662.
    check(|params| Box::new(Adam::new(params)), &[0.5, -0.25], &[0.9, 0.873_366_2]);
}

#[test]
fn adams_settings_count() {
    // m = 0.25, v = 0.125, both corrected by 1/2: 1 - 0.1 · 0.5 / (0.5 + 0.1).
    check(|params| Box::new(Adam::new(params).betas(0.5, 0.5).eps(0.1)), &[0.5], &[0.916_666_7]);
}

#[test]
fn adam_adds_its_decay_to_the_gradient_and_adamw_does_not() {
    let adam = |params: &Parameters| Box::new(Adam::new(params).weight_decay(WeightDecay::Gradient(0.2))) as Box<dyn Optimizer>;
    let adamw = |params: &Parameters| Box::new(Adam::new(params).weight_decay(WeightDecay::Decoupled(0.2))) as Box<dyn Optimizer>;
    // A gradient of 0: Adam uses 0.2 as the gradient and takes a whole step, AdamW shrinks the parameter by 0.1 · 0.2 of itself.
    check(adam, &[0.0], &[0.9]);
    check(adamw, &[0.0, 0.0], &[0.98, 0.9604]);
    // With a gradient, AdamW does both.
    check(adamw, &[0.5], &[0.88]);
    check(adam, &[-0.2], &[1.0]);
}

#[test]
fn gradient_descent_with_and_without_momentum() {
    check(|params| Box::new(Sgd::new(params)), &[0.5, 0.5], &[0.95, 0.9]);
    let momentum = |form| move |params: &Parameters| Box::new(Sgd::new(params).momentum(0.9, form)) as Box<dyn Optimizer>;
    // b = 0.5, then 0.95.
    check(momentum(Momentum::Heavy), &[0.5, 0.5], &[0.95, 0.855]);
    // g + 0.9 b = 0.95, then 1.355.
    check(momentum(Momentum::Nesterov), &[0.5, 0.5], &[0.905, 0.7695]);
    check(|params| Box::new(Sgd::new(params).weight_decay(0.2)), &[0.0], &[0.98]);
}

#[test]
fn a_learning_rate_is_taken_by_the_batch_and_the_last_one_holds() -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    builder.add("p", &[1], Init::Constant(0.0));
    let params = builder.build(0);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 2), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    Sgd::new(&params).record(&graph, &params, &inputs);
    graph.advance(&inputs.state);
    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[1.0_f32, 0.25])?;
    device.write_at(params.grads(), 0, &[-1.0_f32])?;
    let mut values = Vec::new();
    for _ in 0..3 {
        executable.run(1)?;
        values.push(device.read::<f32>(params.values())?[0]);
    }
    assert_eq!(values, [1.0, 1.25, 1.5], "1, then 0.25, and 0.25 beyond the table");
    Ok(())
}

#[test]
fn a_folded_rate_stays_with_the_gradients_of_its_step() {
    // v = -0.1, p = 1 - 0.1 + 0.5 · (-0.1); v = 0.5 · (-0.1) - 0.2 = -0.25, p = 0.85 - 0.2 + 0.5 · (-0.25).
    let folded = |params: &Parameters| Box::new(Sgd::new(params).momentum(0.5, Momentum::FoldedNesterov)) as Box<dyn Optimizer>;
    check(folded, &[1.0, 2.0], &[0.85, 0.525]);
}

#[test]
fn a_scheduled_optimizer_has_its_own_rate_in_each_step() {
    let points = vec![(0.into(), 0.4), (2.into(), 0.0)];
    let schedule = Schedule::PiecewiseLinear { points };
    let scheduled = |params: &Parameters| Box::new(Scheduled::new(Sgd::new(params), &schedule, 3)) as Box<dyn Optimizer>;
    // 0.4, 0.2, 0, and 0 after that.
    check(scheduled, &[1.0, 1.0, 1.0, 1.0], &[0.6, 0.4, 0.4, 0.4]);
}

#[test]
fn lookahead_pulls_the_weights_back_every_k_steps() {
    let lookahead =
        |params: &Parameters| Box::new(Lookahead::new(Sgd::new(params), params, 2, vec![0.5, 0.0])) as Box<dyn Optimizer>;
    // 0.9; 0.8, pulled halfway back to 1; 0.8; 0.7, which stays.
    check(lookahead, &[1.0; 4], &[0.9, 0.9, 0.8, 0.7]);
}

#[test]
fn lookahead_refuses_decays_that_are_no_shares() {
    for decays in [vec![], vec![1.5], vec![f32::NAN]] {
        let error = steps(|params| Box::new(Lookahead::new(Sgd::new(params), params, 2, decays.clone())), &[1.0]);
        let error = error.expect_err("decays beyond 0 to 1").to_string();
        assert!(error.starts_with("lookahead: decays"), "{error}");
    }
}

#[test]
fn dirac_filters_pass_their_input_through() {
    let mut builder = ParametersBuilder::new();
    let id = builder.add("weight", &[3, 3, 3, 2], Init::Dirac { kernel: [3, 3], n_in: 2, n_group_filters: 3 });
    let values = builder.build(0).initial_of(id);
    for (filter, values) in values.chunks(18).enumerate() {
        if filter < 2 {
            let ones: Vec<usize> = (0..18).filter(|&i| values[i] == 1.0).collect();
            assert_eq!(ones, [2 * 4 + filter], "the centre of its own channel");
            assert_eq!(values.iter().sum::<f32>(), 1.0, "filter {filter} is 0 elsewhere");
        } else {
            assert!(values.iter().all(|value| *value != 0.0 && value.abs() <= 18.0_f32.powf(-0.5)), "drawn: {values:?}");
        }
    }
}

#[test]
fn adam_equals_the_paper_in_f64() {
    let grads: Vec<f32> = (0..50).map(|step| ((step * step * 37 + 7) % 101) as f32 / 50.0 - 1.0).collect();
    for weight_decay in [WeightDecay::Gradient(0.0), WeightDecay::Gradient(0.1), WeightDecay::Decoupled(0.1)] {
        let (mut p, mut m, mut v) = (1.0_f64, 0.0, 0.0);
        let mut expected = Vec::new();
        for (step, grad) in (1..).zip(&grads) {
            let mut g = f64::from(*grad);
            match weight_decay {
                WeightDecay::Gradient(decay) => g += f64::from(decay) * p,
                WeightDecay::Decoupled(decay) => p -= 0.1 * f64::from(decay) * p,
            }
            (m, v) = (0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g);
            let (m_hat, v_hat) = (m / (1.0 - 0.9_f64.powi(step)), v / (1.0 - 0.999_f64.powi(step)));
            p -= 0.1 * m_hat / (v_hat.sqrt() + 1e-8);
            expected.push(p as f32);
        }
        let found = steps(|params| Box::new(Adam::new(params).weight_decay(weight_decay)), &grads).expect("it runs");
        let far = found.iter().zip(&expected).find(|(a, b)| (*a - *b).abs() > 1e-5);
        assert_eq!(far, None, "{weight_decay:?}: {found:?}, expected {expected:?}");
    }
}
