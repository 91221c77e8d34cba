//! Slicing and concatenation along a dimension: values, gradients and refusals.

use brisk_tensor::program::Device;
use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Tensor};

use crate::finite_difference::check_gradients;
use crate::refusal::{check_refused, parameter};

/// The values of `y`, on the CPU.
fn values(graph: &Graph, y: &Tensor) -> Result<Vec<f32>, Error> {
    let stored = Persistent::new("y", DType::F32, y.n_elements());
    graph.store(y, &Graph::state_buffer(), &stored);
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    Ok(device.read(&stored)?)
}

/// A tensor whose elements are `first`, `first + 1` and so on.
fn numbers(graph: &Graph, first: usize, shape: &[usize]) -> Tensor {
    let n: usize = shape.iter().product();
    graph.constant("numbers", &(first..first + n).map(|i| i as f32).collect::<Vec<_>>(), shape)
}

#[test]
fn concat_along_each_dimension() -> Result<(), Error> {
    let expected: [&[f32]; 3] = [
        &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0, 16.0, 17.0],
        &[0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0, 4.0, 5.0, 6.0, 7.0, 14.0, 15.0, 16.0, 17.0],
        &[0.0, 1.0, 10.0, 11.0, 2.0, 3.0, 12.0, 13.0, 4.0, 5.0, 14.0, 15.0, 6.0, 7.0, 16.0, 17.0],
    ];
    for (dim, expected) in expected.into_iter().enumerate() {
        let graph = Graph::inference("net");
        let (a, b) = (numbers(&graph, 0, &[2, 2, 2]), numbers(&graph, 10, &[2, 2, 2]));
        let y = a.concat(&[&b], dim);
        assert_eq!((y.shape()[dim], y.n_elements()), (4, 16), "along {dim}");
        assert_eq!(values(&graph, &y)?, expected, "along {dim}");
    }
    Ok(())
}

#[test]
fn concat_has_gradients() {
    let shapes: [[&[usize]; 3]; 3] =
        [[&[1, 3, 2], &[4, 3, 2], &[2, 3, 2]], [&[2, 1, 3], &[2, 4, 3], &[2, 2, 3]], [&[2, 3, 1], &[2, 3, 2], &[2, 3, 5]]];
    for (dim, shapes) in shapes.into_iter().enumerate() {
        // One of them twice, and one after an activation.
        check_gradients(&shapes, |_, p| p[0].concat(&[&p[1].activate(Activation::tanh()), &p[2], &p[0]], dim));
    }
    check_gradients(&[&[5]], |_, p| p[0].concat(&[], 0));
}

#[test]
fn narrow_along_each_dimension() -> Result<(), Error> {
    let expected: [&[f32]; 3] = [
        &[6.0, 7.0, 8.0, 9.0, 10.0, 11.0],
        &[2.0, 3.0, 4.0, 5.0, 8.0, 9.0, 10.0, 11.0, 14.0, 15.0, 16.0, 17.0],
        &[1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0, 17.0],
    ];
    for ((dim, range), expected) in [(0, 1..2), (1, 1..3), (2, 1..2)].into_iter().zip(expected) {
        let graph = Graph::inference("net");
        let y = numbers(&graph, 0, &[3, 3, 2]).narrow(dim, range.clone());
        assert_eq!(y.shape()[dim], range.len(), "along {dim}");
        assert_eq!(values(&graph, &y)?, expected, "along {dim}");
    }
    Ok(())
}

#[test]
fn narrow_has_gradients() {
    for (dim, range) in [(0, 0..2), (0, 2..3), (1, 0..4), (1, 1..3), (2, 4..5), (2, 0..3)] {
        check_gradients(&[&[3, 4, 5]], |_, p| p[0].narrow(dim, range.clone()));
    }
    // Ranges that overlap, and elements outside of both.
    check_gradients(&[&[6, 2]], |_, p| p[0].narrow(0, 0..3).multiply(&p[0].narrow(0, 2..5)));
}

#[test]
fn what_is_cut_and_put_together_is_as_before() -> Result<(), Error> {
    for dim in 0..3 {
        let graph = Graph::inference("net");
        let x = numbers(&graph, 0, &[3, 5, 4]);
        let y = x.narrow(dim, 0..1).concat(&[&x.narrow(dim, 1..3)], dim);
        assert_eq!(values(&graph, &y)?, values(&graph, &x.narrow(dim, 0..3))?, "along {dim}");
    }
    Ok(())
}

#[test]
fn dimensions_are_permuted() -> Result<(), Error> {
    let graph = Graph::inference("net");
    let x = numbers(&graph, 0, &[2, 3, 1, 2]);
    let y = x.permute(&[3, 2, 0, 1]);
    assert_eq!(y.shape(), [2, 1, 2, 3]);
    assert_eq!(values(&graph, &y)?, [0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
    assert_eq!(values(&graph, &x.transpose(0, 3).transpose(3, 0))?, values(&graph, &x)?);
    let n_kernels = graph.with_program(|program| program.n_kernels());
    assert_eq!(x.permute(&[0, 2, 1, 3]).transpose(1, 1).shape(), [2, 1, 3, 2]);
    assert_eq!(graph.with_program(|program| program.n_kernels()), n_kernels, "elements stay where they are");
    Ok(())
}

#[test]
fn permuted_tensors_have_gradients() {
    for dims in [&[1, 0, 2, 3][..], &[3, 1, 0, 2], &[0, 1, 3, 2], &[2, 3, 0, 1]] {
        check_gradients(&[&[3, 4, 5, 2]], |_, p| p[0].activate(Activation::tanh()).permute(dims));
        check_gradients(&[&[3, 4, 5, 2]], |_, p| {
            p[0].permute(dims).reshape(&[p[0].shape()[dims[0]], 120 / p[0].shape()[dims[0]]]).tanh()
        });
    }
    check_gradients(&[&[3, 4], &[4, 3]], |_, p| p[0].transpose(0, 1).multiply(&p[1]).transpose(1, 0).multiply(&p[0]));
}

#[test]
fn dimensions_of_length_1_come_and_go() -> Result<(), Error> {
    let graph = Graph::inference("net");
    let x = numbers(&graph, 0, &[2, 1, 3]);
    assert_eq!(x.squeeze(1).shape(), [2, 3]);
    assert_eq!(x.squeeze(0).shape(), [2, 1, 3], "as in PyTorch, other lengths are kept");
    assert_eq!((x.unsqueeze(0).shape(), x.unsqueeze(3).shape()), (&[1, 2, 1, 3][..], &[2, 1, 3, 1][..]));
    assert_eq!(numbers(&graph, 0, &[]).unsqueeze(0).shape(), [1]);
    Ok(())
}

#[test]
fn sums_up_to_each_element() -> Result<(), Error> {
    let graph = Graph::inference("net");
    let x = numbers(&graph, 0, &[2, 2, 2]);
    for (dim, expected) in [
        (0, [0.0, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0]),
        (1, [0.0, 1.0, 2.0, 4.0, 4.0, 5.0, 10.0, 12.0]),
        (2, [0.0, 1.0, 2.0, 5.0, 4.0, 9.0, 6.0, 13.0]),
    ] {
        assert_eq!(values(&graph, &x.cumsum(dim))?, expected, "along {dim}");
    }
    for dim in 0..3 {
        check_gradients(&[&[4, 3, 5]], |_, p| p[0].cumsum(dim).tanh());
    }
    Ok(())
}

#[test]
fn elements_are_picked_along_a_dimension() -> Result<(), Error> {
    let graph = Graph::inference("net");
    let x = numbers(&graph, 0, &[2, 3, 2]);
    let index = graph.constant_codes("index", &[2, 0, 1, 1, 0, 99, 1, 2], &[2, 2, 2]);
    assert_eq!(values(&graph, &x.gather(1, &index))?, [4.0, 1.0, 2.0, 3.0, 6.0, 7.0, 8.0, 11.0], "99 is beyond the end");
    let index = graph.constant_codes("index", &[1, 0, 1, 1, 0, 0], &[1, 3, 2]);
    assert_eq!(values(&graph, &x.gather(0, &index))?, [6.0, 1.0, 8.0, 9.0, 4.0, 5.0]);
    check_gradients(&[&[4, 3]], |graph, p| {
        let index = graph.constant_codes("index", &[2, 0, 1, 1, 2, 2, 0, 0], &[4, 2]);
        p[0].tanh().gather(1, &index).multiply(&p[0].narrow(1, 0..2))
    });
    Ok(())
}

#[test]
fn the_index_of_a_maximum_picks_it() -> Result<(), Error> {
    let graph = Graph::inference("net");
    let x = graph.constant("x", &[1.0, 5.0, 2.0, 7.0, 7.0, -1.0, 0.0, 3.0, 3.0, -2.0, 4.0, 4.0], &[2, 3, 2]);
    for dim in 0..3 {
        let index = x.arg_max(dim);
        assert_eq!(index.dtype(), DType::U32);
        let maxima = x.gather(dim, &index.unsqueeze(dim)).squeeze(dim);
        assert_eq!(maxima.shape(), x.max(dim).shape(), "along {dim}");
        assert_eq!(values(&graph, &maxima)?, values(&graph, &x.max(dim))?, "along {dim}");
    }
    Ok(())
}

#[test]
fn rows_are_gathered_in_the_order_of_the_index() -> Result<(), Error> {
    let graph = Graph::inference("net");
    let index = graph.constant_codes("index", &[3, 0, 3, 1, 2, 99], &[2, 3]);
    let y = numbers(&graph, 0, &[4, 1, 2]).gather_rows(&index);
    assert_eq!(y.shape(), [2, 3, 1, 2], "those of the index, then those of an entry");
    assert_eq!(values(&graph, &y)?, [6.0, 7.0, 0.0, 1.0, 6.0, 7.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0], "the last is beyond the end");
    let y = numbers(&graph, 5, &[3]).gather_rows(&graph.constant_codes("one", &[2], &[]));
    assert_eq!((y.shape(), values(&graph, &y)?), (&[][..], vec![7.0]), "an element of a vector");
    Ok(())
}

#[test]
fn gathered_rows_have_gradients() {
    // Few entries and many, selected by no index, by one and by several.
    for shape in [&[4, 3][..], &[4, 2, 3], &[100], &[100, 5]] {
        check_gradients(&[shape], |graph, p| {
            let index = graph.constant_codes("index", &[3, 0, 3, 1, 3, 0, 99, 64], &[4, 2]);
            p[0].gather_rows(&index)
        });
    }
    check_gradients(&[&[5, 2]], |graph, p| {
        let index = graph.constant_codes("index", &[4, 0, 4], &[3]);
        p[0].activate(Activation::tanh()).gather_rows(&index).multiply(&p[0].narrow(0, 1..4))
    });
}

#[test]
fn shapes_and_ranges_that_do_not_match_are_refused() {
    let x = |graph: &Graph| parameter(graph, &[2, 3]);
    let (wide, flat) = (|graph: &Graph| parameter(graph, &[2, 4]), |graph: &Graph| parameter(graph, &[6]));
    let index = |graph: &Graph| graph.constant_codes("index", &[0], &[1]);
    let other = Graph::training("other");
    let foreign = x(&other);
    check_refused(
        |graph| x(graph).concat(&[&wide(graph)], 0),
        "concat: `x` has shape [2, 4], expected [2, 3], the shape of the first, except for dimension 0",
    );
    check_refused(
        |graph| x(graph).concat(&[&flat(graph)], 1),
        "concat: `x` has shape [6], expected [2, 3], the shape of the first, except for dimension 1",
    );
    check_refused(|graph| x(graph).concat(&[&wide(graph)], 2), "concat: `x` has shape [2, 3], expected a dimension 2");
    check_refused(
        |graph| x(graph).concat(&[&foreign], 0),
        "concat: `x` belongs to another graph; share values by a `Persistent` that both graphs bind",
    );
    check_refused(
        |graph| x(graph).permute(&[1]),
        "permute: `x` has shape [2, 3], expected 1 dimensions, each of which is once in [1]",
    );
    check_refused(
        |graph| x(graph).permute(&[1, 1]),
        "permute: `x` has shape [2, 3], expected 2 dimensions, each of which is once in [1, 1]",
    );
    check_refused(|graph| x(graph).transpose(0, 2), "transpose: `x` has shape [2, 3], expected a dimension 2");
    check_refused(|graph| x(graph).squeeze(2), "squeeze: `x` has shape [2, 3], expected a dimension 2");
    check_refused(|graph| x(graph).unsqueeze(3), "unsqueeze: `x` has shape [2, 3], expected at least 3 dimensions");
    check_refused(|graph| x(graph).cumsum(2), "cumsum: `x` has shape [2, 3], expected a dimension 2");
    check_refused(|graph| x(graph).arg_max(2), "arg_max: `x` has shape [2, 3], expected a dimension 2");
    check_refused(|graph| x(graph).softmax(2), "softmax: `x` has shape [2, 3], expected a dimension 2");
    check_refused(|graph| x(graph).log_softmax(3), "log_softmax: `x` has shape [2, 3], expected a dimension 3");
    check_refused(|graph| x(graph).gather(2, &index(graph)), "gather: `x` has shape [2, 3], expected a dimension 2");
    check_refused(
        |graph| x(graph).gather(1, &index(graph)),
        "gather: `index` has shape [1], expected [2, 3], the shape of `x`, except along dimension 1",
    );
    check_refused(
        |graph| graph.constant_codes("codes", &[0; 6], &[2, 3]).permute(&[1, 0]),
        "permute: `x` is u32, expected f32, f16 or bf16; cast it first",
    );
    check_refused(
        |graph| x(graph).gather(1, &x(graph)),
        "gather: `index` is f32, expected u32, such as that of `Graph::constant_codes`; a float can be cast to it",
    );
    check_refused(
        |graph| x(graph).narrow(1, 1..4),
        "narrow: `x` has shape [2, 3], expected 1..4 along dimension 1, at least one",
    );
    check_refused(
        |graph| x(graph).narrow(0, 1..1),
        "narrow: `x` has shape [2, 3], expected 1..1 along dimension 0, at least one",
    );
    check_refused(|graph| x(graph).narrow(2, 0..1), "narrow: `x` has shape [2, 3], expected a dimension 2");
    check_refused(
        |graph| graph.constant("one", &[1.0], &[]).gather_rows(&index(graph)),
        "gather_rows: `x` has shape [], expected a dimension 0",
    );
    check_refused(
        |graph| x(graph).gather_rows(&flat(graph)),
        "embedding: `index` is f32, expected u32, such as that of `Graph::constant_codes`; a float can be cast to it",
    );
    check_refused(
        |graph| foreign.gather_rows(&index(graph)),
        "gather_rows: `index` belongs to another graph; share values by a `Persistent` that both graphs bind",
    );
}
