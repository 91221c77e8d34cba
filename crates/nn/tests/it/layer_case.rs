//! Layers against values of PyTorch in f64.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent, Tensor};
use brisk_nn::{Bound, Error, Parameters};

/// The name of a parameter, its shape, values and gradient.
pub(crate) type Parameter<'a> = (&'a str, &'a [usize], &'a [f32], &'a [f32]);

/// Checks the output and the gradients for the sum of `y * [1, 2, …]`, which may be off by `tolerance` of 1 plus the expected
/// number.
#[track_caller]
pub(crate) fn check(
    mut params: Parameters,
    expected: &[Parameter<'_>],
    x: (&[f32], &[usize]),
    y: &[f32],
    tolerance: f32,
    forward: impl Fn(&Bound, &Tensor) -> Tensor,
) -> Result<(), Error> {
    let device = Device::cpu()?;
    for (name, shape, values, _) in expected {
        let id = params.id_of(name).expect(name);
        assert_eq!(params.entry(id).shape, *shape, "{name}");
        params.set_initial(id, values)?;
    }
    params.write_initial(&device)?;
    let graph = Graph::training("train");
    let result = forward(&params.bind(&graph), &graph.constant("x", x.0, x.1));
    let output = Persistent::new("y", DType::F32, y.len());
    graph.store(&result, &Graph::state_buffer(), &output);
    let counts: Vec<f32> = (1..=y.len()).map(|i| i as f32).collect();
    let weighted = result.multiply(&graph.constant("counts", &counts, result.shape()));
    graph.backward(&weighted.sum([0, 1]))?;
    graph.compile(&device)?.run(1)?;
    let is_close = |(found, expected): (&f32, &f32)| (found - expected).abs() <= tolerance * (1.0 + expected.abs());
    let found: Vec<f32> = device.read(&output)?;
    assert!(found.iter().zip(y).all(is_close), "{found:?}, expected {y:?}");
    let grads: Vec<f32> = device.read(params.grads())?;
    for (name, _, _, expected) in expected {
        let found = &grads[params.entry(params.id_of(name).expect(name)).range.clone()];
        assert!(
            found.len() == expected.len() && found.iter().zip(*expected).all(is_close),
            "{name}: {found:?}, expected {expected:?}"
        );
    }
    Ok(())
}
