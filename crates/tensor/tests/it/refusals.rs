//! The message of each error.

use brisk_tensor::{
    Activation, BatchNormOptions, Conv2dOptions, DType, Error, Graph, Persistent, Pool2d, Reduction, Statistics, Tensor,
    Transpose,
};

use crate::refusal::{check_refused, n_kernels, parameter, refusal};

#[test]
fn shapes_that_do_not_fit() {
    let (x, weight) = (|graph: &Graph| parameter(graph, &[2, 3]), |graph: &Graph| parameter(graph, &[4, 5]));
    let (bias, vector) = (|graph: &Graph| parameter(graph, &[5]), |graph: &Graph| parameter(graph, &[6]));
    let fits = |graph: &Graph| parameter(graph, &[4, 3]);
    let codes = |graph: &Graph| graph.constant_codes("codes", &[0, 1, 2], &[3]);
    let act = Activation::relu();
    check_refused(
        |graph| x(graph).linear(&weight(graph), None, act.clone()),
        "linear: `weight` has shape [4, 5], expected [4, 3], as many columns as the input",
    );
    check_refused(
        |graph| x(graph).linear(&fits(graph), Some(&bias(graph)), act.clone()),
        "linear: `bias` has shape [5], expected [4]",
    );
    check_refused(
        |graph| vector(graph).linear(&fits(graph), None, act.clone()),
        "linear: `x` has shape [6], expected two dimensions",
    );
    check_refused(|graph| x(graph).linear(&vector(graph), None, act), "linear: `weight` has shape [6], expected two dimensions");
    check_refused(|graph| x(graph).matmul(&weight(graph), Transpose::None), "matmul: `b` has shape [4, 5], expected [3, _]");
    check_refused(|graph| x(graph).matmul(&weight(graph), Transpose::B), "matmul: `b` has shape [4, 5], expected [_, 3]");
    check_refused(|graph| x(graph).matmul(&vector(graph), Transpose::B), "matmul: `b` has shape [6], expected two dimensions");
    check_refused(
        |graph| parameter(graph, &[2, 3, 4]).batched_matmul(&parameter(graph, &[2, 5, 6]), Transpose::None),
        "batched_matmul: `b` has shape [2, 5, 6], expected [2, 4, _]",
    );
    check_refused(
        |graph| x(graph).bce_with_logits(&bias(graph), &vector(graph), Reduction::Mean, 1.0),
        "bce_with_logits: `target` has shape [5], expected 6 elements for an input of shape [2, 3]",
    );
    check_refused(
        |graph| x(graph).mse_loss(&vector(graph), &bias(graph), Reduction::Mean),
        "mse_loss: `weight` has shape [5], expected 2 elements for an input of shape [2, 3]",
    );
    check_refused(
        |graph| x(graph).concat_columns(&[&weight(graph)]),
        "concat_columns: `x` has shape [4, 5], expected 2 rows, as the first has",
    );
    check_refused(
        |graph| x(graph).concat_columns(&[&vector(graph)]),
        "concat_columns: `x` has shape [6], expected two dimensions",
    );
    check_refused(|graph| x(graph).columns(1..4), "columns: `x` has shape [2, 3], expected columns 1..4, at least one");
    check_refused(|graph| x(graph).columns(2..2), "columns: `x` has shape [2, 3], expected columns 2..2, at least one");
    check_refused(
        |graph| x(graph).multiply(&vector(graph)),
        "multiply: `b` has shape [6], expected a shape that broadcasts with [2, 3]: from the last dimension on, lengths that are equal or 1",
    );
    check_refused(
        |graph| vector(graph).embedding(&codes(graph), 0, None),
        "embedding: `weight` has shape [6], expected two dimensions",
    );
    check_refused(
        |graph| x(graph).embedding(&graph.constant_codes("codes", &[0], &[1, 1, 1]), 0, None),
        "embedding: `index` has shape [1, 1, 1], expected two dimensions",
    );
    check_refused(|graph| x(graph).embedding(&codes(graph), 1, None), "embedding: index_col is 1, expected a column of `index`");
    check_refused(
        |graph| x(graph).embedding(&codes(graph), 0, Some(2)),
        "embedding_grad: padding is 2, expected an entry of the table",
    );
    check_refused(
        |graph| x(graph).embedding(&vector(graph), 0, None),
        "embedding: `index` is f32, expected u32, such as that of `Graph::constant_codes`; a float can be cast to it",
    );
    check_refused(|graph| x(graph).reshape(&[7]), "reshape: `shape` has shape [7], expected 6 elements");
    check_refused(
        |graph| x(graph).reshape(&[usize::MAX, 2]),
        &format!("reshape: `shape` has shape [{}, 2], expected 6 elements", usize::MAX),
    );
    check_refused(
        |graph| graph.constant("c", &[1.0], &[2]),
        "constant: `values` has shape [1], expected as many elements as shape [2] has",
    );
}

#[test]
fn images_that_do_not_fit() {
    let x = |graph: &Graph| parameter(graph, &[2, 5, 5, 3]);
    let (filter, rows) = (|graph: &Graph| parameter(graph, &[4, 3, 3, 2]), |graph: &Graph| parameter(graph, &[2, 3]));
    let four = "four dimensions, [n_images, height, width, n_channels]";
    check_refused(
        |graph| x(graph).conv2d(&filter(graph), None, [1, 1], [0, 0], Activation::relu()),
        "conv2d: `weight` has shape [4, 3, 3, 2], expected [4, 3, 3, 3], as many channels as the input",
    );
    let grouped = |graph: &Graph, filters: [usize; 4], n_groups: usize, dilation: usize| {
        let options = Conv2dOptions { n_groups, dilation: [1, dilation], ..Conv2dOptions::default() };
        parameter(graph, &[2, 5, 5, 6]).conv2d_with(&parameter(graph, &filters), None, &options)
    };
    check_refused(
        |graph| grouped(graph, [4, 3, 3, 6], 2, 1),
        "conv2d: `weight` has shape [4, 3, 3, 6], expected [4, 3, 3, 3], as many channels as a group of the input has, of 2",
    );
    check_refused(
        |graph| grouped(graph, [4, 3, 3, 1], 4, 1),
        "conv2d: `x` has shape [2, 5, 5, 6], expected a last dimension that 4 groups divide evenly",
    );
    check_refused(
        |graph| grouped(graph, [4, 3, 3, 2], 3, 1),
        "conv2d: `weight` has shape [4, 3, 3, 2], expected a first dimension that 3 groups divide evenly",
    );
    check_refused(
        |graph| grouped(graph, [4, 3, 3, 6], 0, 1),
        "conv2d: n_groups is 0, expected at least 1; 1 for a convolution without groups",
    );
    check_refused(
        |graph| grouped(graph, [4, 3, 3, 6], 1, 0),
        "conv2d: dilation is 0, expected 1 to 2^29; 1 for windows without gaps",
    );
    check_refused(
        |graph| rows(graph).max_pool2d(&Pool2d::square(2)),
        &format!("max_pool2d: `x` has shape [2, 3], expected {four}"),
    );
    check_refused(|graph| rows(graph).global_avg_pool2d(), &format!("global_avg_pool2d: `x` has shape [2, 3], expected {four}"));
    let norm = |graph: &Graph, n_channels: usize, n_groups: usize| {
        let running = parameter(graph, &[n_channels]);
        x(graph).batch_norm(&BatchNormOptions {
            weight: None,
            bias: None,
            running_mean: &running,
            running_var: &running,
            statistics: Statistics::Batch { n_groups, momentum: 0.1 },
            eps: 1e-5,
            activation: Activation::identity(),
        })
    };
    check_refused(
        |graph| norm(graph, 4, 1),
        "batch_norm: `running_mean` has shape [4], expected 3 elements for an input of shape [2, 5, 5, 3]",
    );
    check_refused(
        |graph| norm(graph, 3, 3),
        "batch_norm: `x` has shape [2, 5, 5, 3], expected a first dimension that 3 groups divide evenly",
    );
}

#[test]
fn ranges_beyond_the_buffer() {
    let [buffer, short] = [("flat", 8), ("short", 4)].map(|(name, len)| Persistent::new(name, DType::F32, len));
    check_refused(
        |graph| graph.part(&buffer, 4..10, &[6]),
        "tensor: `shape` has shape [6], expected 6 elements, those of 4..10 of `flat` (8)",
    );
    check_refused(
        |graph| graph.parameter(&buffer, &short, 0..8, &[8]),
        "parameter: `shape` has shape [8], expected 8 elements, those of 0..8 of `short` (4)",
    );
}

#[test]
fn gradients_that_overlap() {
    let [values, grads] = ["values", "grads"].map(|name| Persistent::new(name, DType::F32, 8));
    check_refused(
        |graph| {
            graph.parameter(&values, &grads, 0..4, &[4]);
            graph.parameter(&values, &grads, 2..6, &[4])
        },
        "parameter: a gradient whose elements are also those of another parameter, of shape [4], expected separate gradients, of which each is written, or no gradient for one of them (`Graph::part`)",
    );
}

#[test]
fn settings_of_losses() {
    use brisk_tensor::LossReduction::{Mean, None};
    let x = |graph: &Graph| parameter(graph, &[4]);
    for delta in [0.0, -1.0, f32::NAN, f32::INFINITY] {
        let message = format!("huber_loss: delta = {delta}, expected a finite number above 0");
        check_refused(|graph| x(graph).huber_loss(&x(graph), delta, Mean), &message);
    }
    let check = |record: &dyn Fn(Tensor, Tensor) -> Tensor, message: &str| {
        let error = refusal(|graph| record(x(graph), x(graph)));
        assert!(error.to_string().starts_with(message), "{error}");
    };
    check(&|x, y| x.smooth_l1_loss(&y, -1.0, None), "smooth_l1_loss: beta = -1, expected");
    check(&|x, y| x.quantile_loss(&y, 95.0, Mean), "quantile_loss: quantile = 95, expected");
    check(&|x, y| x.quantile_loss(&y, 1.0, Mean), "quantile_loss: quantile = 1, expected");
    check(&|x, y| x.focal_loss(&y, -0.5, 2.0, Mean), "focal_loss: alpha = -0.5, expected");
    check(&|x, y| x.focal_loss(&y, 0.5, -2.0, Mean), "focal_loss: gamma = -2, expected");
    check(&|x, y| x.hinge_loss(&y, f32::NAN, Mean), "hinge_loss: margin = NaN, expected");
    for pos_weight in [-1.0, f32::NAN, f32::INFINITY] {
        let message = format!("bce_with_logits: pos_weight = {pos_weight}, expected");
        check(&|x, y| x.bce_with_logits(&y, &y, Reduction::Mean, pos_weight), &message);
    }
}

#[test]
fn tensors_of_two_graphs() {
    let other = Graph::training("other");
    let (x, foreign) = (|graph: &Graph| parameter(graph, &[3, 3]), parameter(&other, &[3, 3]));
    let message = |op: &str, arg: &str| {
        format!("{op}: `{arg}` belongs to another graph; share values by a `Persistent` that both graphs bind")
    };
    check_refused(|graph| x(graph).linear(&foreign, None, Activation::relu()), &message("linear", "weight"));
    check_refused(|graph| x(graph).linear(&x(graph), Some(&foreign), Activation::relu()), &message("linear", "bias"));
    check_refused(|graph| x(graph).matmul(&foreign, Transpose::None), &message("matmul", "b"));
    check_refused(
        |graph| x(graph).bce_with_logits(&foreign, &x(graph), Reduction::Mean, 1.0),
        &message("bce_with_logits", "target"),
    );
    check_refused(|graph| x(graph).mse_loss(&x(graph), &foreign, Reduction::Mean), &message("mse_loss", "weight"));

    let graph = Graph::training("net");
    check_error(graph.backward(&foreign), &message("backward", "loss"));
    check_error(graph.backward_from(&x(&graph), &foreign), &message("backward", "dy"));
    graph.store(&foreign, &Graph::state_buffer(), &Persistent::new("all", DType::F32, 9));
    check_error(graph.check(), &message("store", "x"));
    assert_eq!((n_kernels(&graph), n_kernels(&other)), (0, 0), "nothing was recorded");
}

#[track_caller]
fn check_error(result: Result<(), Error>, message: &str) {
    let error = result.expect_err("this must be refused");
    assert_eq!(error.kind().to_string(), message, "{error:?}");
    let place = error.place().expect("errors of recording have a place");
    assert_eq!(place.location().file(), file!(), "every function on the way is `#[track_caller]`");
}

#[test]
fn halves_that_are_to_be_stored() {
    let all = Persistent::new("all", DType::F32, 4);
    let logits = |graph: &Graph| graph.constant_in(DType::F16, "logits", &[0.5; 4], &[4]);
    let graph = Graph::inference("net");
    graph.store(&logits(&graph), &Graph::state_buffer(), &all);
    check_error(graph.check(), "store: `x` is f16, expected f32; store `x.cast(DType::F32)`");
    assert_eq!(n_kernels(&graph), 0, "nothing was recorded");

    let graph = Graph::inference("net");
    graph.store(&logits(&graph).cast(DType::F32), &Graph::state_buffer(), &all);
    graph.check().expect("as the error says");
}

#[test]
fn backward_without_a_tape() {
    let graph = Graph::inference("answers");
    let loss = parameter(&graph, &[]);
    let message = "backward: the graph `answers` was made for inference and keeps no tape; make it with `Graph::training`";
    let before = Graph::planned_peak_bytes(&[&graph]).expect("the graph can be planned");
    check_error(graph.backward(&loss), message);
    check_error(graph.backward_from(&loss, &loss), message);
    let after = Graph::planned_peak_bytes(&[&graph]).expect("the graph can be planned");
    assert_eq!(after, before, "no constant is left over");
}

#[test]
fn backward_from_more_than_one_number() {
    let graph = Graph::training("net");
    let y = parameter(&graph, &[2, 3]);
    check_error(graph.backward(&y), "backward: the loss has shape [2, 3], expected one number; reduce it first");
    check_error(
        graph.backward_from(&y, &parameter(&graph, &[3, 2])),
        "backward: `dy` has shape [3, 2], expected [2, 3], the shape of the tensor that it is the gradient of",
    );
}

#[test]
fn backward_twice() {
    let graph = Graph::training("net");
    let loss = parameter(&graph, &[1, 1]).activate(Activation::tanh());
    graph.backward(&loss).expect("the first time");
    let n = n_kernels(&graph);
    let message = "backward: the graph `net` has its backward pass already; sum the losses and go back once, or go back within `Graph::accumulate`";
    check_error(graph.backward(&loss), message);
    assert_eq!(n_kernels(&graph), n, "nothing was recorded");
}

#[test]
fn backward_without_parameters() {
    let graph = Graph::training("net");
    let loss = graph.constant("c", &[1.0], &[]);
    let message = "backward: the loss does not depend on any parameter of the graph `net`, so there is nothing to train";
    check_error(graph.backward(&loss), message);
    check_error(graph.backward(&loss), message);
    // The graph is as before, and has a backward pass for a loss that depends on a parameter.
    let loss = parameter(&graph, &[]).activate(Activation::tanh());
    graph.backward(&loss).expect("the graph is as before the refusals");
}

#[test]
fn tensors_of_no_elements_are_refused_and_do_not_panic() {
    let (nothing, x) = (|graph: &Graph| parameter(graph, &[0, 3]), |graph: &Graph| parameter(graph, &[2, 3]));
    let refusals = [
        refusal(|graph| nothing(graph).linear(&x(graph), None, Activation::relu())),
        refusal(|graph| nothing(graph).matmul(&x(graph), Transpose::B)),
        refusal(|graph| nothing(graph).activate(Activation::relu())),
        refusal(|graph| nothing(graph).bce_with_logits(&nothing(graph), &nothing(graph), Reduction::Mean, 1.0)),
        refusal(|graph| nothing(graph).mse_loss(&nothing(graph), &nothing(graph), Reduction::Mean)),
    ];
    for error in refusals {
        assert!(matches!(error.kind(), Error::Program(_)), "{error:?}");
    }
}
