//! When averages and slow weights change, step by step.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Ema, EmaConfig, Error, Init, Lookahead, Optimizer, Parameters, ParametersBuilder, Sgd, StepInputs};

fn parameters() -> Parameters {
    let mut builder = ParametersBuilder::new();
    builder.add("p", &[2], Init::Constant(0.0));
    builder.build(0)
}

/// An average of (4, 4) after a step with the parameters (8, 0).
fn average(config: EmaConfig, state: [u32; 4]) -> Result<Vec<f32>, Error> {
    let (params, device, of_run) = (parameters(), Device::cpu()?, Graph::state_buffer());
    let ema = Ema::new(&params, config);
    let graph = Graph::inference("ema");
    ema.record(&graph, &params, &of_run);
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write_at(params.values(), 0, &[8.0_f32, 0.0])?;
    device.write_at(ema.average(), 0, &[4.0_f32, 4.0])?;
    device.write(&of_run, &state)?;
    executable.run(1)?;
    Ok(device.read::<f32>(ema.average())?[..2].to_vec())
}

#[track_caller]
fn check_average(config: EmaConfig, state: [u32; 4], expected: [f32; 2]) {
    assert_eq!(average(config, state).expect("it runs"), expected, "in state {state:?}");
}

#[test]
fn the_first_average_is_a_copy_then_it_follows() {
    let ema = EmaConfig::new(0.75);
    check_average(ema, [0; 4], [8.0, 0.0]);
    check_average(ema, [0, 1, 0, 0], [5.0, 3.0]);
    check_average(EmaConfig::new(1.0), [0, 1, 0, 0], [4.0, 4.0]);
    check_average(EmaConfig::new(0.0), [0, 1, 0, 0], [8.0, 0.0]);
}

#[test]
fn an_average_is_the_parameters_up_to_its_first_update_and_then_updated_every_so_many_steps() {
    let ema = EmaConfig::new(0.75).every(3).first_step(3);
    for (step, expected) in [(0, [8.0, 0.0]), (2, [8.0, 0.0]), (3, [4.0, 4.0]), (4, [4.0, 4.0]), (5, [5.0, 3.0])] {
        check_average(ema, [0, step, 0, 0], expected);
    }
    // Skipped steps are not averaged, and do not count.
    for (state, expected) in [([0, 2, 1, 0], [4.0, 4.0]), ([0, 4, 0, 2], [8.0, 0.0]), ([0, 6, 0, 1], [5.0, 3.0])] {
        check_average(ema, state, expected);
    }
}

#[test]
fn from_given_values_the_first_update_is_an_average() {
    let ema = EmaConfig::new(0.75).every(5).first_step(3).from_initial();
    for (step, expected) in [(0, [4.0, 4.0]), (1, [4.0, 4.0]), (2, [5.0, 3.0]), (3, [4.0, 4.0]), (7, [5.0, 3.0])] {
        check_average(ema, [0, step, 0, 0], expected);
    }
}

#[test]
fn a_decay_beyond_one_and_steps_of_zero_are_refused() {
    for (config, expected) in [
        (EmaConfig::new(1.5), "ema: decay = 1.5"),
        (EmaConfig::new(0.5).every(0), "ema: every is 0"),
        (EmaConfig::new(0.5).first_step(0), "ema: first_step = 0"),
    ] {
        let error = average(config, [0; 4]).expect_err("it is refused").to_string();
        assert!(error.contains(expected), "{error}");
    }
}

/// The weights and the slow weights, (2, 4) and (10, 8), after step number `step`, of which `n_skipped` were skipped.
fn pulled(ending_at: Option<usize>, [step, skip, n_skipped]: [u32; 3]) -> Result<[Vec<f32>; 2], Error> {
    let (params, device) = (parameters(), Device::cpu()?);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let lookahead = Lookahead::new(Sgd::new(&params), &params, 5, vec![0.5, 0.25]);
    let lookahead = if let Some(end) = ending_at { lookahead.ending_at(end) } else { lookahead };
    let graph = Graph::inference("lookahead");
    lookahead.record(&graph, &params, &inputs);
    let executable = graph.compile(&device)?;
    params.write_initial(&device)?;
    device.write_at(params.values(), 0, &[2.0_f32, 4.0])?;
    let state = lookahead.state();
    let (_, slow) = state.iter().find(|(name, _)| name == "lookahead.slow").expect("the slow weights");
    device.write_at(slow, 0, &[10.0_f32, 8.0])?;
    device.write(&inputs.state, &[3, step, skip, n_skipped])?;
    executable.run(1)?;
    let read = |buffer| -> Result<Vec<f32>, Error> { Ok(device.read::<f32>(buffer)?[..2].to_vec()) };
    Ok([read(params.values())?, read(slow)?])
}

#[track_caller]
fn check_pulled(ending_at: Option<usize>, state: [u32; 3], weights: [f32; 2], slow: [f32; 2]) {
    assert_eq!(pulled(ending_at, state).expect("it runs"), [weights.to_vec(), slow.to_vec()], "in state {state:?}");
}

#[test]
fn every_fifth_step_pulls_the_weights_back() {
    check_pulled(None, [3, 0, 0], [2.0, 4.0], [10.0, 8.0]);
    check_pulled(None, [4, 0, 0], [6.0, 6.0], [6.0, 6.0]);
    check_pulled(None, [9, 0, 0], [4.0, 5.0], [4.0, 5.0]);
    // The last decay holds for later updates.
    check_pulled(None, [14, 0, 0], [4.0, 5.0], [4.0, 5.0]);
    // A step that is skipped, and the fourth that was not.
    check_pulled(None, [4, 1, 0], [2.0, 4.0], [10.0, 8.0]);
    check_pulled(None, [4, 0, 1], [2.0, 4.0], [10.0, 8.0]);
}

#[test]
fn a_run_ends_with_the_slow_weights() {
    check_pulled(Some(8), [6, 0, 0], [2.0, 4.0], [10.0, 8.0]);
    check_pulled(Some(8), [7, 0, 0], [10.0, 8.0], [10.0, 8.0]);
    check_pulled(Some(8), [7, 1, 0], [10.0, 8.0], [10.0, 8.0]);
    // The last, which is the fifth that was not skipped.
    check_pulled(Some(8), [7, 0, 3], [6.0, 6.0], [6.0, 6.0]);
}

#[test]
fn the_slow_weights_start_as_the_weights() {
    check_pulled(None, [0, 0, 0], [2.0, 4.0], [2.0, 4.0]);
    // Before the first step that is not skipped.
    check_pulled(None, [2, 0, 2], [2.0, 4.0], [2.0, 4.0]);
    check_pulled(None, [2, 1, 2], [2.0, 4.0], [2.0, 4.0]);
}
