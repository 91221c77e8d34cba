//! What happens to gradients before a step, and to parameters after it.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Ema, Error, Init, Optimizer, Parameters, ParametersBuilder, Sgd, StepInputs};

/// Two tensors, of two elements and of one.
fn parameters(start: f32) -> Parameters {
    let mut builder = ParametersBuilder::new();
    builder.add("a", &[2], Init::Constant(start));
    builder.add("b", &[1], Init::Constant(start));
    builder.build(0)
}

/// The gradients after running what `record` records.
fn clipped(grads: [f32; 3], record: impl Fn(&Graph, &Parameters)) -> Result<Vec<f32>, Error> {
    let params = parameters(0.0);
    let graph = Graph::inference("clip");
    record(&graph, &params);
    let device = Device::cpu()?;
    let starts: Vec<usize> = params.entries().iter().map(|entry| entry.range.start).collect();
    device.write_at(params.grads(), starts[0], &grads[..2])?;
    device.write_at(params.grads(), starts[1], &grads[2..])?;
    graph.compile(&device)?.run(1)?;
    let found: Vec<f32> = device.read(params.grads())?;
    Ok(vec![found[starts[0]], found[starts[0] + 1], found[starts[1]]])
}

#[test]
fn the_norm_is_that_of_all_tensors_together() -> Result<(), Error> {
    let norm = |max_norm: f32| move |graph: &Graph, params: &Parameters| drop(params.clip_grad_norm(graph, max_norm));
    let near = |found: Vec<f32>, expected: [f32; 3]| found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(near(clipped([3.0, 4.0, 12.0], norm(6.5))?, [1.5, 2.0, 6.0]), "13 becomes 6.5");
    assert_eq!(clipped([3.0, 4.0, 12.0], norm(14.0))?, [3.0, 4.0, 12.0], "13 is less than 14");
    assert!(clipped([3.0, f32::NAN, 12.0], norm(1.0))?.iter().all(|g| g.is_nan()), "a NaN is not hidden");
    Ok(())
}

#[test]
fn the_norm_before_is_a_result() -> Result<(), Error> {
    let params = parameters(0.0);
    let graph = Graph::inference("clip");
    let norm = params.clip_grad_norm(&graph, 1.0);
    let (state, found) = (Graph::state_buffer(), Persistent::new("norm", DType::F32, 1));
    graph.store(&norm, &state, &found);
    let device = Device::cpu()?;
    device.write_at(params.grads(), 0, &[3.0_f32, 4.0])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(&found)?, [5.0], "before it was clipped to 1");
    Ok(())
}

#[test]
fn values_are_cut() -> Result<(), Error> {
    let cut = clipped([3.0, -4.0, 0.25], |graph, params| params.clip_grad_value(graph, 0.5))?;
    assert_eq!(cut, [0.5, -0.5, 0.25], "at a half");
    Ok(())
}

#[test]
fn a_negative_norm_is_refused() {
    let graph = Graph::inference("clip");
    parameters(0.0).clip_grad_norm(&graph, -1.0);
    let error = graph.check().expect_err("a norm is not negative");
    assert!(error.to_string().contains("max_norm = -1"), "{error}");
}

#[test]
fn an_average_follows_the_parameters() -> Result<(), Error> {
    let params = parameters(1.0);
    let ema = Ema::new(&params, 0.5).every(2);
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    let graph = Graph::inference("step");
    Sgd::new(&params).record(&graph, &params, &inputs);
    ema.record(&graph, &params, &inputs.state);
    graph.advance(&inputs.state);

    let evaluation = Graph::inference("evaluation");
    let bound = ema.averaged(&params).bind(&evaluation);
    let found = Persistent::new("found", DType::F32, 2);
    evaluation.store(&bound.tensors()[0], &Graph::state_buffer(), &found);

    let device = Device::cpu()?;
    params.write_initial(&device)?;
    device.write(&inputs.lr, &[1.0_f32])?;
    device.write_at(params.grads(), 0, &[1.0_f32, -1.0])?;
    let (step, evaluate) = (graph.compile(&device)?, evaluation.compile(&device)?);
    // The parameters take the values 0, -1, -2, -3 and 2, 3, 4, 5; the average equals them up to step 2, and is then updated
    // every second step: (-1 - 3) / 2.
    for expected in [[0.0, 2.0], [-1.0, 3.0], [-1.0, 3.0], [-2.0, 4.0]] {
        step.run(1)?;
        evaluate.run(1)?;
        assert_eq!(device.read::<f32>(&found)?, expected, "the average");
    }
    assert_eq!(device.read::<f32>(ema.average())?[..2], [-2.0, 4.0], "laid out as the parameters");
    Ok(())
}
