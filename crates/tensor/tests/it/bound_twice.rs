//! Parameters of which another graph, or another part of this one, has gradients too.

use brisk_tensor::program::Device;
use brisk_tensor::{DType, Error, Graph, LossReduction, Persistent, Tensor};

/// The gradients of four parameters of which each pair is bound as one tensor, where both were 5, with these losses.
fn gradients(record: impl Fn(&Graph, &dyn Fn(usize) -> Tensor) -> Result<(), Error>) -> Result<Vec<f32>, Error> {
    let device = Device::cpu()?;
    let [values, grads] = ["values", "grads"].map(|name| Persistent::new(name, DType::F32, 4));
    device.write(&values, &[1.0_f32, 2.0, 3.0, 4.0])?;
    device.write(&grads, &[5.0_f32; 4])?;
    let graph = Graph::training("losses");
    record(&graph, &|i| graph.parameter(&values, &grads, 2 * i..2 * i + 2, &[2]))?;
    graph.compile(&device)?.run(1)?;
    Ok(device.read(&grads)?)
}

#[test]
fn a_parameter_that_is_bound_twice_has_one_gradient() -> Result<(), Error> {
    let found =
        gradients(|graph, bound| graph.backward(&(bound(0).sum(..) + bound(0).map(|x| x.powi(2)).sum(..) + bound(1).sum(..))))?;
    assert_eq!(found, [3.0, 5.0, 1.0, 1.0]);
    Ok(())
}

#[test]
fn a_gradient_that_the_loss_does_not_reach_is_0() -> Result<(), Error> {
    let found = gradients(|graph, bound| {
        let [used, unused] = [bound(0), bound(1)];
        graph.backward(&used.sum(..))?;
        assert_eq!([used, unused].map(|tensor| tensor.has_gradient()), [true, false]);
        Ok(())
    })?;
    assert_eq!(found, [1.0, 1.0, 0.0, 0.0]);
    // A later pass adds to it.
    let found = gradients(|graph, bound| {
        let [first, second] = [bound(0), bound(1)];
        graph.backward(&first.sum(..))?;
        graph.accumulate(|| graph.backward(&second.sum(..)))?;
        assert!(second.has_gradient());
        Ok(())
    })?;
    assert_eq!(found, [1.0; 4]);
    Ok(())
}

#[test]
fn a_parameter_that_is_bound_after_the_backward_pass_has_no_gradient() -> Result<(), Error> {
    let found = gradients(|graph, bound| {
        graph.backward(&bound(0).sum(..))?;
        assert!(!bound(1).has_gradient());
        bound(0);
        Ok(())
    })?;
    assert_eq!(found, [1.0, 1.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn losses_without_a_curve_or_weights() -> Result<(), Error> {
    let targets = |graph: &Graph| graph.constant("targets", &[0.0, 1.0], &[2]);
    let of = |loss: &dyn Fn(Tensor, Tensor) -> Tensor| gradients(|graph, bound| graph.backward(&loss(bound(0), targets(graph))));
    assert_eq!(of(&|x, t| x.smooth_l1_loss(&t, 0.0, LossReduction::Sum))?[..2], [1.0, 1.0]);
    let focal = |alpha: f32| of(&|x, t| x.focal_loss(&t, alpha, 2.0, LossReduction::Sum));
    let (equal, halves) = (focal(-1.0)?, focal(0.5)?);
    assert!(equal[..2].iter().zip(&halves).all(|(equal, half)| (equal - 2.0 * half).abs() < 1e-6), "{equal:?}, {halves:?}");
    Ok(())
}
