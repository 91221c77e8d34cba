//! Operations along rows, and losses over classes: gradients against finite differences, and refusals.

use brisk_tensor::program::Device;
use brisk_tensor::{CrossEntropyOptions, DType, Error, Graph, Persistent, Tensor, Transpose};

use crate::finite_difference::check_gradients;
use crate::refusal::{check_refused, parameter, refusal};

fn constant(graph: &Graph, shape: &[usize], value: impl Fn(usize) -> f32) -> Tensor {
    let values: Vec<f32> = (0..shape.iter().product()).map(value).collect();
    graph.constant("constant", &values, shape)
}

#[test]
fn softmax_along_each_dimension() {
    for shape in [&[5][..], &[4, 9], &[2, 3, 17], &[6, 1, 1], &[2, 3, 2, 3]] {
        for dim in 0..shape.len() {
            if shape[dim] > 1 {
                check_gradients(&[shape], |_, p| p[0].softmax(dim));
            }
            check_gradients(&[shape], |_, p| {
                let y = p[0].log_softmax(dim).add(&p[0]);
                assert_eq!(y.shape(), shape, "the shape stays");
                y
            });
        }
    }
}

#[test]
fn cross_entropy() {
    for label_smoothing in [0.0, 0.2] {
        for with_class_weights in [None, Some([1.0, 0.5, 2.0])] {
            check_gradients(&[&[2, 3, 3]], |graph, p| {
                let target = graph.constant_codes("target", &[0, 2, 1, 1, 2, 0], &[2, 3]);
                let weight = constant(graph, &[6], |row| row as f32);
                let class_weight = with_class_weights.map(|weights| graph.constant("v", &weights, &[3]));
                let options = CrossEntropyOptions { label_smoothing, class_weight: class_weight.as_ref(), ..Default::default() };
                p[0].cross_entropy(&target, &weight, options)
            });
        }
    }
}

#[test]
fn layer_norm_with_and_without_weight_and_bias() {
    for shape in [&[4, 9][..], &[2, 3, 17]] {
        let columns = &shape[shape.len() - 1..];
        check_gradients(&[shape], |_, p| p[0].layer_norm(None, None, 1e-5));
        check_gradients(&[shape, columns], |_, p| p[0].layer_norm(Some(&p[1]), None, 1e-5));
        check_gradients(&[shape, columns, columns], |_, p| p[0].layer_norm(Some(&p[1]), Some(&p[2]), 1e-5));
    }
}

#[test]
fn reductions_over_any_run_of_dimensions() {
    type Reduction = fn(&Tensor, std::ops::Range<usize>) -> Tensor;
    let reductions: [Reduction; 5] = [|x, d| x.sum(d), |x, d| x.mean(d), |x, d| x.max(d), |x, d| x.min(d), |x, d| x.norm(d)];
    for reduction in reductions {
        for (dims, left) in [(0..1, &[3, 4][..]), (1..2, &[2, 4]), (2..3, &[2, 3]), (0..2, &[4]), (1..3, &[2]), (0..3, &[])] {
            check_gradients(&[&[2, 3, 4]], |_, p| {
                let y = reduction(&p[0], dims.clone());
                assert_eq!(y.shape(), left, "over {dims:?}");
                y
            });
        }
    }
}

#[test]
fn ranges_of_dimensions_are_what_they_say() {
    let graph = Graph::training("net");
    let x = parameter(&graph, &[2, 3, 4]);
    assert_eq!(x.sum(..).shape(), [0; 0], "all");
    assert_eq!(x.sum(1..).shape(), [2], "from the second");
    assert_eq!(x.mean(..=1).shape(), [4], "up to the second");
    assert_eq!(x.sum(..).max(..).shape(), [0; 0], "of one number");
    graph.check().expect("these dimensions exist");
    let x = |graph: &Graph| parameter(graph, &[2, 3, 4]);
    check_refused(|graph| x(graph).sum(2..4), "sum: `x` has shape [2, 3, 4], expected dimensions 2..4 of it, at least one");
    check_refused(|graph| x(graph).sum(3..), "sum: `x` has shape [2, 3, 4], expected dimensions 3..3 of it, at least one");
}

#[test]
fn batched_matmul_with_every_transpose() {
    let (n_batch, m, n, k) = (3, 4, 2, 5);
    for (transpose, a, b) in [
        (Transpose::None, [n_batch, m, k], [n_batch, k, n]),
        (Transpose::A, [n_batch, k, m], [n_batch, k, n]),
        (Transpose::B, [n_batch, m, k], [n_batch, n, k]),
        (Transpose::Both, [n_batch, k, m], [n_batch, n, k]),
    ] {
        check_gradients(&[&a, &b], |_, p| {
            let y = p[0].batched_matmul(&p[1], transpose);
            assert_eq!(y.shape(), [n_batch, m, n], "{transpose:?}");
            y
        });
    }
    // A Gram matrix: both operands are one tensor.
    check_gradients(&[&[2, 3, 4]], |_, p| p[0].batched_matmul(&p[0], Transpose::B));
}

#[test]
fn accuracy_is_the_mean_of_what_is_correct() -> Result<(), Error> {
    let (graph, state) = (Graph::inference("score"), Graph::state_buffer());
    let x = graph.constant("x", &[0.0, 1.0, 3.0, 2.0, 5.0, 5.0, 0.0, -1.0], &[2, 2, 2]);
    let target = graph.constant_codes("target", &[1, 1, 0, 0], &[2, 2]);
    let correct = x.correct(&target);
    assert_eq!(correct.shape(), [2, 2], "one a row");
    let stored = Persistent::new("accuracy", DType::F32, 1);
    graph.store(&correct.mean(..), &state, &stored);
    let device = Device::cpu()?;
    graph.compile(&device)?.run(1)?;
    assert_eq!(device.read::<f32>(&stored)?, [0.75], "all but the second");
    Ok(())
}

#[test]
fn losses_over_classes_refuse_what_does_not_fit() {
    let [x, pair, five] = [&[2, 3][..], &[2], &[5]].map(|shape| move |graph: &Graph| parameter(graph, shape));
    let target = |graph: &Graph| graph.constant_codes("target", &[0, 1], &[2]);
    let options = CrossEntropyOptions::default();
    check_refused(
        |graph| x(graph).cross_entropy(&five(graph), &pair(graph), options),
        "cross_entropy: `target` has shape [5], expected 2 elements for an input of shape [2, 3]",
    );
    check_refused(
        |graph| x(graph).cross_entropy(&target(graph), &five(graph), options),
        "cross_entropy: `weight` has shape [5], expected 2 elements for an input of shape [2, 3]",
    );
    check_refused(
        |graph| {
            let class_weight = pair(graph);
            let options = CrossEntropyOptions { class_weight: Some(&class_weight), ..options };
            x(graph).cross_entropy(&target(graph), &pair(graph), options)
        },
        "cross_entropy: `class_weight` has shape [2], expected 3 elements for an input of shape [2, 3]",
    );
    check_refused(
        |graph| x(graph).cross_entropy(&pair(graph), &pair(graph), options),
        "cross_entropy: `target` is f32, expected u32, such as that of `Graph::constant_codes`; a float can be cast to it",
    );
    check_refused(
        |graph| {
            let options = CrossEntropyOptions { label_smoothing: 2.0, ..options };
            x(graph).cross_entropy(&target(graph), &pair(graph), options)
        },
        "cross_entropy: label_smoothing = 2 is not supported, expected a number from 0 to 1",
    );
    let foreign = parameter(&Graph::training("other"), &[2]);
    check_refused(
        |graph| x(graph).cross_entropy(&target(graph), &foreign, options),
        "cross_entropy: `weight` belongs to another graph; share values by a `Persistent` that both graphs bind",
    );
}

#[test]
fn layer_norm_refuses_what_does_not_fit() {
    let [x, pair, triple] = [&[2, 3][..], &[2], &[3]].map(|shape| move |graph: &Graph| parameter(graph, shape));
    check_refused(
        |graph| x(graph).layer_norm(Some(&pair(graph)), None, 1e-5),
        "layer_norm: `weight` has shape [2], expected 3 elements for an input of shape [2, 3]",
    );
    check_refused(
        |graph| x(graph).layer_norm(None, Some(&triple(graph)), 1e-5),
        "layer_norm: `bias` has shape [3], expected a weight with it; pass one of ones",
    );
    let foreign = parameter(&Graph::training("other"), &[3]);
    check_refused(
        |graph| x(graph).layer_norm(Some(&foreign), None, 1e-5),
        "layer_norm: `weight` belongs to another graph; share values by a `Persistent` that both graphs bind",
    );
}

#[test]
fn batched_matmul_refuses_what_does_not_fit() {
    let [a, other, flat] = [&[2, 3, 4][..], &[2, 3, 5], &[6]].map(|shape| move |graph: &Graph| parameter(graph, shape));
    check_refused(
        |graph| a(graph).batched_matmul(&other(graph), Transpose::None),
        "batched_matmul: `b` has shape [2, 3, 5], expected [2, 4, _]",
    );
    check_refused(
        |graph| a(graph).batched_matmul(&flat(graph), Transpose::None),
        "batched_matmul: `b` has shape [6], expected three dimensions",
    );
}

#[test]
fn no_elements_are_refused_and_do_not_panic() {
    let nothing = |graph: &Graph| parameter(graph, &[0, 3]);
    let refusals = [
        refusal(|graph| nothing(graph).softmax(1)),
        refusal(|graph| nothing(graph).softmax(0)),
        refusal(|graph| nothing(graph).log_softmax(1)),
        refusal(|graph| nothing(graph).layer_norm(None, None, 1e-5)),
        refusal(|graph| {
            let options = CrossEntropyOptions::default();
            nothing(graph).cross_entropy(&nothing(graph), &nothing(graph), options)
        }),
        refusal(|graph| nothing(graph).sum(..)),
    ];
    for error in refusals {
        assert!(matches!(error.kind(), Error::Program(_)), "{error:?}");
    }
}
