//! Arithmetic operators: values, gradients and kernels.

use brisk_tensor::program::Device;
use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Precision, Tensor, Transpose};

use crate::finite_difference::check_gradients;
use crate::refusal::parameter;

/// The value of `f` of two tensors, on the CPU.
fn value(f: impl Fn(Tensor, Tensor) -> Tensor) -> Result<Vec<f32>, Error> {
    let graph = Graph::inference("operators");
    let (a, b) = (graph.constant("a", &[1.0, -2.0, 0.5], &[3]), graph.constant("b", &[4.0, 0.5, -8.0], &[3]));
    let y = f(a, b);
    let all = Persistent::new("y", DType::F32, 3);
    graph.store(&y, &Graph::state_buffer(), &all);
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    Ok(device.read(&all)?)
}

#[test]
fn of_two_tensors_owned_or_borrowed() -> Result<(), Error> {
    for f in [|a, b| a + b, |a, b| &a + b, |a, b| a + &b, |a, b| &a + &b] as [fn(Tensor, Tensor) -> Tensor; 4] {
        assert_eq!(value(f)?, [5.0, -1.5, -7.5]);
    }
    for f in [|a, b| a - b, |a, b| &a - b, |a, b| a - &b, |a, b| &a - &b] as [fn(Tensor, Tensor) -> Tensor; 4] {
        assert_eq!(value(f)?, [-3.0, -2.5, 8.5]);
    }
    for f in [|a, b| a * b, |a, b| &a * b, |a, b| a * &b, |a, b| &a * &b] as [fn(Tensor, Tensor) -> Tensor; 4] {
        assert_eq!(value(f)?, [4.0, -1.0, -4.0]);
    }
    for f in [|a, b| a / b, |a, b| &a / b, |a, b| a / &b, |a, b| &a / &b] as [fn(Tensor, Tensor) -> Tensor; 4] {
        assert_eq!(value(f)?, [0.25, -4.0, -0.0625]);
    }
    assert_eq!(value(|a, _| -a)?, [-1.0, 2.0, -0.5]);
    assert_eq!(value(|a, _| -&a)?, [-1.0, 2.0, -0.5]);
    Ok(())
}

#[test]
fn of_a_tensor_and_a_number_on_either_side() -> Result<(), Error> {
    assert_eq!(value(|a, _| (a + 2.0) - 1.0)?, [2.0, -1.0, 1.5]);
    assert_eq!(value(|a, _| 2.0 + &a * 4.0)?, [6.0, -6.0, 4.0]);
    assert_eq!(value(|a, _| 1.0 - a)?, [0.0, 3.0, 0.5]);
    assert_eq!(value(|a, _| 3.0 * (&a / 2.0))?, [1.5, -3.0, 0.75]);
    assert_eq!(value(|a, _| 1.0 / &a)?, [1.0, -0.5, 2.0]);
    assert_eq!(value(|a, _| 1.0 / a)?, [1.0, -0.5, 2.0]);
    Ok(())
}

/// PyTorch divides a number by a tensor as a reciprocal, which autocast computes in f32.
#[test]
fn a_number_by_a_tensor_is_in_f32_under_autocast() {
    let graph = Graph::inference("reciprocal");
    let a = graph.constant("a", &[2.0; 4], &[4]);
    let [reciprocal, half] = graph.autocast(Precision::F16, || {
        let a = a.cast(DType::F16);
        [1.0 / &a, a / 2.0]
    });
    assert_eq!([reciprocal.dtype(), half.dtype()], [DType::F32, DType::F16]);
}

#[test]
fn they_broadcast_and_have_gradients() {
    check_gradients(&[&[3, 4], &[4]], |_, p| (&p[0] + &p[1]) * &p[0] - &p[1] / (&p[0] * &p[0] + 1.0));
    check_gradients(&[&[3, 4], &[3, 1]], |_, p| -(1.0 - &p[0]) * 0.5 + 2.0 / (p[1].exp() + 1.0));
}

#[test]
fn a_chain_of_them_is_one_kernel_after_fusion() {
    let graph = Graph::inference("chain");
    let (a, b) = (graph.constant("a", &[1.0; 64], &[64]), graph.constant("b", &[2.0; 64], &[64]));
    let y = ((&a - &b) * 0.5 + 1.0) / (&a * &a + 3.0) - b.exp();
    graph.store(&y, &Graph::state_buffer(), &Persistent::new("y", DType::F32, 64));
    graph.check().expect("the shapes match");
    let names: Vec<_> = graph.fused().kernel_names().collect();
    assert_eq!(names.len(), 2, "the chain and the store: {names:?}");
    let operations = graph.report().operations;
    let (last, chain) = operations.split_last().expect("eight operations");
    assert!(chain.iter().all(|operation| operation.is_fused) && !last.is_fused, "{}", graph.report());
    assert_eq!((chain.len(), last.name), (7, "sub"));

    graph.fuse_by(&[]);
    assert!(graph.report().operations.iter().all(|operation| !operation.is_fused));
}

#[test]
fn the_report_says_which_products_are_fused_with_what_follows() {
    let graph = Graph::training("layer");
    let (x, w) = (graph.constant("x", &[1.0; 12], &[3, 4]), parameter(&graph, &[5, 4]));
    let hidden = x.matmul(&w, Transpose::B).activate(Activation::relu());
    graph.backward(&hidden.exp().sum(..)).expect("the shapes match");
    let fused: Vec<_> = graph.report().operations.iter().map(|operation| (operation.name, operation.is_fused)).collect();
    // The backward pass reads the results of the activation and of `exp`.
    assert_eq!(fused, [("matmul", true), ("activate", false), ("exp", false), ("sum", false)]);
    assert!(graph.report().to_string().lines().nth(1).is_some_and(|line| line.ends_with("  fused")), "{}", graph.report());
}
