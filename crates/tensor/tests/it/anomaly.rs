//! Values that are not finite are traced to the operation that made them.

use brisk_tensor::program::Device;
use brisk_tensor::{Activation, Anomaly, DType, Error, Graph, Pass, Persistent, Precision, Reduction};

/// Two layers in f16 and a loss; `x`, `w` fill the input and the first weight, `scale` is the gradient from above.
fn first_anomaly(x: f32, w: f32, scale: f32) -> Result<Option<Anomaly>, Error> {
    let graph = Graph::training("watched");
    graph.detect_anomaly();
    let (values, grads) = (Persistent::new("values", DType::F32, 128), Persistent::new("grads", DType::F32, 128));
    let first = graph.parameter(&values, &grads, 0..16, &[4, 4])?;
    let second = graph.parameter(&values, &grads, 64..68, &[1, 4])?;
    let input = Persistent::new("x", DType::F32, 8);
    let input_tensor = graph.tensor(&input, &[2, 4])?;
    let (target, weights) = (graph.constant("target", &[0.0, 1.0], &[2])?, graph.constant("weights", &[1.0; 2], &[2])?);
    let loss = graph.autocast(Precision::F16, || {
        let hidden = input_tensor.linear(&first, None, Activation::Relu)?;
        hidden.linear(&second, None, Activation::Identity)?.bce_with_logits(&target, &weights, Reduction::Mean, 1.0)
    })?;
    graph.backward_from(&loss, &graph.constant("scale", &[scale], &[])?)?;
    let device = Device::cpu()?;
    let step = graph.compile(&device)?;
    let write = |x: f32| {
        let mut weights = vec![w; 16];
        weights.resize(128, 1e-3);
        device.write(&values, &weights)?;
        device.write(&input, &[x; 8])
    };
    // Two runs in which all is well, then the one in question, then one whose values are no better.
    write(0.5)?;
    step.run(2)?;
    write(x)?;
    step.run(1)?;
    write(f32::NAN)?;
    if graph.first_anomaly(&device)?.is_some() {
        step.run(1)?;
    }
    graph.first_anomaly(&device)
}

#[track_caller]
fn check(found: Result<Option<Anomaly>, Error>, operation: &'static str, index: usize, pass: Pass) {
    assert_eq!(found, Ok(Some(Anomaly { run: 3, operation, index, pass })), "in the third run");
}

#[test]
fn the_first_operation_is_named() {
    assert_eq!(first_anomaly(0.5, 0.1, 1.0), Ok(None));
    // Casts of the input and of the weight are operations 0 and 1, the first layer is 2.
    check(first_anomaly(f32::NAN, 0.1, 1.0), "cast", 0, Pass::Operand(0));
    check(first_anomaly(1e5, 0.1, 1.0), "cast", 0, Pass::Forward);
    check(first_anomaly(5e4, 0.9, 1.0), "linear", 2, Pass::Forward);
}

#[test]
fn so_is_one_of_the_backward_pass() {
    // 0.5 · 0.25 is what each row's logit gets of the loss.
    let found = first_anomaly(0.5, 0.1, 1e9).expect("it runs").expect("halves end at 65504");
    assert_eq!((found.run, found.operation, found.pass), (1, "bce_with_logits", Pass::Backward));
    assert_eq!(
        found.to_string(),
        "run 1, operation 5, `bce_with_logits`: a gradient that it gives is not finite, all before it was"
    );
}

#[test]
fn it_is_asked_for_or_an_error() {
    let graph = Graph::training("net");
    let error = graph.first_anomaly(&Device::cpu().expect("the cpu is there")).expect_err("nobody looks");
    let expected = "first_anomaly: the graph `net` looks for none; call `Graph::detect_anomaly` before anything is recorded";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_graph_that_is_compiled_anew_starts_anew() -> Result<(), Error> {
    let graph = Graph::inference("again");
    graph.detect_anomaly();
    let x = Persistent::new("x", DType::F32, 4);
    graph.tensor(&x, &[4])?.activate(Activation::Tanh)?;
    let device = Device::cpu()?;
    device.write(&x, &[f32::INFINITY; 4])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(graph.first_anomaly(&device)?.map(|anomaly| anomaly.pass), Some(Pass::Operand(0)));
    device.write(&x, &[1.0_f32; 4])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(graph.first_anomaly(&device)?, None);
    Ok(())
}
