//! Gradients against finite differences, with the kernels that computed them.

use brisk_tensor::{DType, Error, Graph, Persistent, Tensor};

/// Checks the gradients of a function of parameters with these shapes, in each precision, and returns the kernels that it records
/// in f32.
#[track_caller]
pub(crate) fn check_gradients(shapes: &[&[usize]], record: impl Fn(&Graph, &[Tensor]) -> Tensor) -> Vec<&'static str> {
    if let Err(error) = brisk_tensor::check_gradients(shapes, &record) {
        panic!("{error}");
    }
    kernels(shapes, record).expect("what has been checked can be recorded")
}

fn kernels(shapes: &[&[usize]], record: impl Fn(&Graph, &[Tensor]) -> Tensor) -> Result<Vec<&'static str>, Error> {
    let graph = Graph::training("kernels");
    let parameter = |shape: &&[usize]| {
        let n = shape.iter().product();
        let (values, grads) = (Persistent::new("values", DType::F32, n), Persistent::new("grads", DType::F32, n));
        graph.parameter(&values, &grads, 0..n, shape)
    };
    let parameters = shapes.iter().map(parameter).collect::<Vec<_>>();
    let result = record(&graph, &parameters);
    if result.shape().is_empty() {
        graph.backward(&result)?;
    } else {
        graph.backward_from(&result, &graph.constant("g", &vec![1.0; result.n_elements()], result.shape()))?;
    }
    Ok(graph.with_program(|program| program.kernel_names().collect()))
}
