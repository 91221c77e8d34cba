//! Values that are not finite are traced to the operation that computed them.

use brisk_tensor::program::Device;
use brisk_tensor::{Activation, Anomaly, DType, Error, Graph, Pass, Persistent, Precision, Reduction};

/// Two layers in f16 and a loss; `x`, `w` fill the input and the first weight, `scale` is the gradient from above.
fn first_anomaly(x: f32, w: f32, scale: f32) -> Result<Option<Anomaly>, Error> {
    let graph = Graph::training("watched");
    graph.detect_anomaly();
    let (values, grads) = (Persistent::new("values", DType::F32, 128), Persistent::new("grads", DType::F32, 128));
    let first = graph.parameter(&values, &grads, 0..16, &[4, 4]);
    let second = graph.parameter(&values, &grads, 64..68, &[1, 4]);
    let input = Persistent::new("x", DType::F32, 8);
    let input_tensor = graph.tensor(&input, &[2, 4]);
    let (target, weights) = (graph.constant("target", &[0.0, 1.0], &[2]), graph.constant("weights", &[1.0; 2], &[2]));
    let loss = graph.autocast(Precision::F16, || {
        let hidden = input_tensor.linear(&first, None, Activation::relu());
        hidden.linear(&second, None, Activation::identity()).bce_with_logits(&target, &weights, Reduction::Mean, 1.0)
    });
    graph.backward_from(&loss, &graph.constant("scale", &[scale], &[]))?;
    let device = Device::cpu()?;
    let step = graph.compile(&device)?;
    let write = |x: f32| {
        let mut weights = vec![w; 16];
        weights.resize(128, 1e-3);
        device.write(&values, &weights)?;
        device.write(&input, &[x; 8])
    };
    // Two runs with finite values, then the run that is checked, then one with NaN, which must not replace the first anomaly.
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
    // 0.5 · 0.25 is the gradient of each row's logit.
    let found = first_anomaly(0.5, 0.1, 1e9).expect("it runs").expect("halves end at 65504");
    assert_eq!((found.run, found.operation, found.pass), (1, "bce_with_logits", Pass::Backward));
    assert_eq!(
        found.to_string(),
        "run 1, operation 5, `bce_with_logits`: a gradient that it computes is the first value that is not finite"
    );
}

#[test]
fn it_is_asked_for_or_an_error() {
    let graph = Graph::training("net");
    let device = Device::cpu().expect("the cpu is there");
    let rest = "the graph `net` does not detect anomalies; call `Graph::detect_anomaly` before anything is recorded";
    let error = graph.first_anomaly(&device).expect_err("anomalies are not detected");
    assert_eq!(error.to_string(), format!("first_anomaly: {rest}"));
    let error = graph.clear_anomaly(&device).expect_err("anomalies are not detected");
    assert_eq!(error.to_string(), format!("clear_anomaly: {rest}"));
}

#[test]
fn it_is_asked_for_before_the_first_operation() -> Result<(), Error> {
    let graph = Graph::inference("late");
    // Tensors from outside may have been bound before.
    let x = graph.constant("x", &[1e30; 4], &[2, 2]);
    graph.detect_anomaly();
    let squares = x.multiply(&x);
    graph.detect_anomaly(); // for the second time
    squares.softmax(1);
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(graph.first_anomaly(&device)?.map(|anomaly| anomaly.operation), Some("multiply"));

    let graph = Graph::inference("late");
    let x = graph.constant("x", &[1e30; 4], &[2, 2]);
    x.multiply(&x);
    let n = graph.with_program(|program| program.n_kernels());
    graph.detect_anomaly();
    let error = graph.check().expect_err("the product is not checked");
    let expected = "detect_anomaly: the graph `late` has operations already, the first of them `multiply`, expected to be called before anything is recorded";
    assert_eq!(error.kind().to_string(), expected);
    x.softmax(1);
    assert_eq!(graph.with_program(|program| program.n_kernels()), n + 1, "no result is checked");
    Ok(())
}

/// As with a loss scale: a gradient overflows, the scale is lowered, then the data cause an anomaly.
#[test]
fn what_was_found_is_forgotten_so_that_the_next_is_found() -> Result<(), Error> {
    let graph = Graph::training("scaled");
    graph.detect_anomaly();
    let (values, grads) = (Persistent::new("values", DType::F32, 4), Persistent::new("grads", DType::F32, 4));
    let (x, scale) = (Persistent::new("x", DType::F32, 4), Persistent::new("scale", DType::F32, 1));
    let w = graph.parameter(&values, &grads, 0..4, &[4]);
    let loss = w.multiply(&graph.tensor(&x, &[4])).sum(..);
    graph.backward_from(&loss, &graph.tensor(&scale, &[]))?;
    let device = Device::cpu()?;
    let step = graph.compile(&device)?;
    device.write(&values, &[1.0_f32; 4])?;
    device.write(&x, &[1e20_f32; 4])?;
    device.write(&scale, &[1e20_f32])?;
    step.run(2)?;
    let found = |run, operation, index, pass| Some(Anomaly { run, operation, index, pass });
    assert_eq!(graph.first_anomaly(&device)?, found(1, "multiply", 0, Pass::Backward));

    graph.clear_anomaly(&device)?;
    assert_eq!(graph.first_anomaly(&device)?, None);
    device.write(&scale, &[1e10_f32])?;
    step.run(2)?;
    assert_eq!(graph.first_anomaly(&device)?, None);
    device.write(&x, &[f32::NAN; 4])?;
    step.run(1)?;
    assert_eq!(graph.first_anomaly(&device)?, found(3, "multiply", 0, Pass::Operand(1)));
    Ok(())
}

#[test]
fn a_graph_that_is_compiled_anew_starts_anew() -> Result<(), Error> {
    let graph = Graph::inference("again");
    graph.detect_anomaly();
    let x = Persistent::new("x", DType::F32, 4);
    graph.tensor(&x, &[4]).activate(Activation::tanh());
    let device = Device::cpu()?;
    device.write(&x, &[f32::INFINITY; 4])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(graph.first_anomaly(&device)?.map(|anomaly| anomaly.pass), Some(Pass::Operand(0)));
    device.write(&x, &[1.0_f32; 4])?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(graph.first_anomaly(&device)?, None);
    Ok(())
}
