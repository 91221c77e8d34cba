//! Arithmetic operators: values, gradients and kernels.

use brisk_tensor::program::Device;
use brisk_tensor::{DType, Error, Graph, Persistent, Tensor};

use crate::finite_difference::check_gradients;

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

#[test]
fn they_broadcast_and_have_gradients() {
    check_gradients(&[&[3, 4], &[4]], |_, p| (&p[0] + &p[1]) * &p[0] - &p[1] / (&p[0] * &p[0] + 1.0));
    check_gradients(&[&[3, 4], &[3, 1]], |_, p| -(1.0 - &p[0]) * 0.5 + 2.0 / (p[1].exp() + 1.0));
}
