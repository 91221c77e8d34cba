//! Elements selected by indices known when recording: `index_select`, `flip` and `pad_reflect`.

use brisk_tensor::program::Device;
use brisk_tensor::{DType, Error, Graph, Persistent, Tensor};

use crate::finite_difference::check_gradients;
use crate::refusal::{check_refused, parameter};

/// Checks the result for a tensor of `shape` whose elements are 0, 1, 2, …, stored in f32 and in 16 bits.
#[track_caller]
fn check(shape: &[usize], record: impl Fn(&Tensor) -> Tensor, expected_shape: &[usize], expected: &[f32]) {
    for dtype in [DType::F32, DType::F16, DType::Bf16] {
        let graph = Graph::inference("net");
        let numbers: Vec<f32> = (0..shape.iter().product::<usize>()).map(|i| i as f32).collect();
        let y = record(&graph.constant_in(dtype, "numbers", &numbers, shape));
        assert_eq!((y.shape(), y.dtype()), (expected_shape, dtype), "shape and dtype");
        let y = y.cast(DType::F32);
        let stored = Persistent::new("y", DType::F32, y.n_elements());
        graph.store(&y, &Graph::state_buffer(), &stored);
        let values = || -> Result<Vec<f32>, Error> {
            let device = Device::cpu()?;
            graph.compile(&device)?.run(1)?;
            Ok(device.read(&stored)?)
        };
        assert_eq!(values().expect("the program runs"), expected, "{dtype}");
    }
}

#[test]
fn index_select_along_each_dimension() {
    check(&[2, 3, 2], |x| x.index_select(0, &[1, 1, 0]).narrow(1, 0..1), &[3, 1, 2], &[6.0, 7.0, 6.0, 7.0, 0.0, 1.0]);
    check(&[2, 3, 2], |x| x.index_select(1, &[2, 0]), &[2, 2, 2], &[4.0, 5.0, 0.0, 1.0, 10.0, 11.0, 6.0, 7.0]);
    check(&[2, 1, 2], |x| x.index_select(2, &[1, 1, 0]), &[2, 1, 3], &[1.0, 1.0, 0.0, 3.0, 3.0, 2.0]);
}

#[test]
fn flip_reverses_each_dimension() {
    check(&[2, 3], |x| x.flip(0), &[2, 3], &[3.0, 4.0, 5.0, 0.0, 1.0, 2.0]);
    check(&[2, 3], |x| x.flip(1), &[2, 3], &[2.0, 1.0, 0.0, 5.0, 4.0, 3.0]);
    check(&[2, 3], |x| x.flip(..), &[2, 3], &[5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
    check(&[1, 2, 2], |x| x.flip([2, 0]), &[1, 2, 2], &[1.0, 0.0, 3.0, 2.0]);
}

#[test]
fn reflected_padding_equals_pytorch() {
    // torch.nn.functional.pad(torch.arange(6.).reshape(1, 1, 2, 3), (2, 2, 1, 1), mode="reflect")
    let rows = [[5.0, 4.0, 3.0, 4.0, 5.0, 4.0, 3.0], [2.0, 1.0, 0.0, 1.0, 2.0, 1.0, 0.0]];
    let expected = [rows[0], rows[1], rows[0], rows[1]].concat();
    check(&[1, 2, 3, 1], |x| x.pad_reflect([1, 2]), &[1, 4, 7, 1], &expected);
    check(&[1, 1, 2, 2], |x| x.pad_reflect([0, 1]), &[1, 1, 4, 2], &[2.0, 3.0, 0.0, 1.0, 2.0, 3.0, 0.0, 1.0]);
}

#[test]
fn selections_have_gradients() {
    for (dim, indices) in [(0, &[3, 0, 3][..]), (1, &[2, 0, 2, 1]), (2, &[1, 1, 4, 0]), (2, &[1, 0, 2, 4, 3]), (1, &[1, 2, 0])] {
        check_gradients(&[&[4, 3, 5]], |_, p| p[0].tanh().index_select(dim, indices));
    }
    let kernels = check_gradients(&[&[4, 3, 5]], |_, p| p[0].flip([0, 2]));
    assert_eq!(kernels.iter().filter(|kernel| **kernel == "gather").count(), 4, "{kernels:?}");
    check_gradients(&[&[2, 4, 3, 2]], |_, p| p[0].pad_reflect([3, 2]).tanh());
}

#[test]
fn indices_that_do_not_exist_are_refused() {
    let x = |graph: &Graph| parameter(graph, &[2, 3]);
    check_refused(|graph| x(graph).index_select(2, &[0]), "index_select: `x` has shape [2, 3], expected a dimension 2");
    check_refused(
        |graph| x(graph).index_select(1, &[0, 3]),
        "index_select: `x` has shape [2, 3], expected more than 3 elements along dimension 1, the largest valid index being the length minus 1",
    );
    check_refused(|graph| x(graph).index_select(1, &[]), "index_select: `indices` has shape [0], expected at least one index");
    check_refused(|graph| x(graph).flip(2), "flip: `x` has shape [2, 3], expected a dimension 2");
    check_refused(|graph| x(graph).flip([1, 1]), "flip: `x` has shape [2, 3], expected dimensions [1, 1] of it, each once");
    check_refused(
        |graph| x(graph).pad_reflect([1, 1]),
        "pad_reflect: `x` has shape [2, 3], expected four dimensions, [n_images, height, width, n_channels]",
    );
    check_refused(
        |graph| parameter(graph, &[1, 4, 3, 2]).pad_reflect([2, 3]),
        "pad_reflect: `x` has shape [1, 4, 3, 2], expected a height above 2 and a width above 3, the padding",
    );
}
