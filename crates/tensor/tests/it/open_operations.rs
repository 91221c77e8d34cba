//! Operations that are defined outside the crate.

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::{Epilogue, Map, MapReduce, Matmul, Reducer};
use brisk_tensor::{
    Activation, Autocast, AutocastRule, Backward, DType, Error, Forward, Graph, Operation, Precision, Signature, Tensor,
    Transpose, check_gradients,
};

use crate::refusal::{parameter, refusal};

/// `relu(x)²`, which keeps `relu(x)` for the backward pass.
#[derive(Debug)]
struct SquaredRelu;

impl Operation for SquaredRelu {
    fn signature(&self) -> Signature {
        Signature::new("squared_relu", &["input"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        let n = x.len();
        let relu = forward.transient("relu", x.dtype(), n);
        forward.push(Map::unary(n, |x| x.relu()), &[x, relu])?;
        forward.save(relu);
        forward.push(Map::binary(n, |a, b| a * b), &[relu, relu, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, relu) = (backward.grad(), backward.saved(0));
        for _ in 0..2 {
            backward.give(0, Map::binary(relu.len(), |a, b| a * b), &[dy, relu])?;
        }
        Ok(())
    }
}

/// `x wᵀ`, a product like those of the crate.
#[derive(Debug)]
struct Projection;

impl Operation for Projection {
    fn signature(&self) -> Signature {
        Signature { autocast: AutocastRule::Lower, ..Signature::new("projection", &["x", "w"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        Ok(vec![inputs[0].shape()[0], inputs[1].shape()[0]])
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let ([m, k], [n, _]) = (forward.dims(0), forward.dims(1));
        let y = forward.output();
        let kernel = Matmul { n_batch: 1, m, n, k, transpose: Transpose::B, epilogue: Epilogue::none() };
        forward.push(kernel, &[forward.input(0), forward.input(1), y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let ([m, k], [n, _]) = (backward.dims(0), backward.dims(1));
        let (dy, x, w) = (backward.grad(), backward.input(0), backward.input(1));
        if backward.wants(1) {
            backward.give(
                1,
                Matmul { n_batch: 1, m: n, n: k, k: m, transpose: Transpose::A, epilogue: Epilogue::none() },
                &[dy, x],
            )?;
        }
        if backward.wants(0) {
            let dx = |epilogue| Matmul { n_batch: 1, m, n: k, k: n, transpose: Transpose::None, epilogue };
            backward.give_product(0, dx, &[dy, w])?;
        }
        Ok(())
    }
}

#[test]
fn gradients_pass_through_operations_from_outside() {
    check_gradients(&[&[3, 4]], |graph, p| graph.apply(SquaredRelu, &[&p[0]])).expect("the gradient is right");
    check_gradients(&[&[3, 4], &[5, 4], &[2, 5]], |graph, p| {
        let hidden = graph.apply(Projection, &[&p[0], &p[1]]).activate(Activation::tanh());
        graph.apply(Projection, &[&hidden, &p[2]])
    })
    .expect("the gradient is right");
}

#[test]
fn autocast_applies_to_them_and_overrides_know_their_names() -> Result<(), Error> {
    let graph = Graph::training("cast");
    let (x, w) = (parameter(&graph, &[3, 4]), parameter(&graph, &[5, 4]));
    let dtype = |region: Autocast| graph.autocast(region, || graph.apply(Projection, &[&x, &w]).dtype());
    assert_eq!(dtype(Precision::Bf16.into()), DType::Bf16);
    assert_eq!(dtype(Autocast::new(Precision::F16).with("projection", Precision::F32)), DType::F32);
    assert_eq!(graph.apply(Projection, &[&x, &w]).dtype(), DType::F32);
    Ok(())
}

#[test]
fn a_tensor_of_another_graph_is_refused_under_the_name_of_the_input() {
    let other = Graph::training("other");
    let error = refusal(|graph| graph.apply(Projection, &[&parameter(graph, &[3, 4]), &parameter(&other, &[5, 4])]));
    assert_eq!(error.kind(), &Error::ForeignTensor { op: "projection", arg: "w" });
}

/// An operation whose backward pass is missing or wrong.
#[derive(Debug)]
enum Faulty {
    WithoutGradient,
    GradientOfAnotherLength,
    WrongGradient,
}

impl Operation for Faulty {
    fn signature(&self) -> Signature {
        Signature::new("faulty", &["input"])
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        Ok(inputs[0].shape().to_vec())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let (x, y) = (forward.input(0), forward.output());
        forward.push(Map::unary(x.len(), |x| x.tanh()), &[x, y])
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let (dy, y) = (backward.grad(), backward.output());
        match self {
            Self::WithoutGradient => Err(Error::NotDifferentiable { op: self.signature().name }),
            Self::GradientOfAnotherLength => backward.give(0, MapReduce::of(Reducer::Sum, &[3, 4], &[0]), &[dy]),
            Self::WrongGradient => backward.give(0, Map::binary(y.len(), |a, b| a * b), &[dy, y]),
        }
    }
}

#[test]
fn a_faulty_backward_pass_is_an_error() {
    let backward = |operation: Faulty| {
        let graph = Graph::training("faulty");
        let y = graph.apply(operation, &[&parameter(&graph, &[3, 4])]);
        graph.backward(&y.sum(..))
    };
    let error = backward(Faulty::WithoutGradient).expect_err("no gradient").kind().to_string();
    assert!(error.starts_with("backward: the operation `faulty` has no gradient"), "{error}");
    let error = backward(Faulty::GradientOfAnotherLength).expect_err("4 elements, not 12").to_string();
    assert!(error.contains("map_reduce") && error.contains("got 12"), "{error}");

    let error = check_gradients(&[&[3, 4]], |graph, p| graph.apply(Faulty::WrongGradient, &[&p[0]])).expect_err("not 1 - y²");
    assert!(matches!(error, Error::Gradient { .. }), "{error}");
}

#[test]
fn what_is_not_differentiable_stops_the_gradient() -> Result<(), Error> {
    let graph = Graph::training("counts");
    let scores = parameter(&graph, &[3, 4]);
    let targets = graph.constant_codes("targets", &[0, 1, 2], &[3]);
    let accuracy = scores.correct(&targets).mean(..);
    let error = graph.backward(&accuracy).expect_err("there is nothing to train");
    assert!(matches!(error.kind(), Error::NothingToTrain { .. }), "{error}");
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    Ok(())
}
