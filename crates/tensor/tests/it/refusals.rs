//! Every error there is: what it says, and that the graph is as before.

use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Reduction, Tensor, Transpose};

fn parameter(graph: &Graph, shape: &[usize]) -> Tensor {
    let n = shape.iter().product();
    let (values, grads) = (Persistent::new("values", DType::F32, n), Persistent::new("grads", DType::F32, n));
    graph.parameter(&values, &grads, 0..n, shape).expect("the shape fits")
}

#[track_caller]
fn check<T: std::fmt::Debug>(result: Result<T, Error>, message: &str) {
    let error = result.expect_err("this is to be refused");
    assert_eq!(error.to_string(), message, "{error:?}");
}

fn n_kernels(graph: &Graph) -> usize {
    graph.with_program(|program| program.n_kernels())
}

#[test]
fn shapes_that_do_not_fit() {
    let graph = Graph::training("net");
    let [x, weight, bias, vector] = [&[2, 3][..], &[4, 5], &[5], &[6]].map(|shape| parameter(&graph, shape));
    let fits = parameter(&graph, &[4, 3]);
    let act = Activation::Relu;
    check(x.linear(&weight, None, act), "linear: `weight` has shape [4, 5], expected [4, 3], as many columns as the input");
    check(x.linear(&fits, Some(&bias), act), "linear: `bias` has shape [5], expected [4]");
    check(vector.linear(&fits, None, act), "linear: `x` has shape [6], expected two dimensions");
    check(x.linear(&vector, None, act), "linear: `weight` has shape [6], expected two dimensions");
    check(x.matmul(&weight, Transpose::None), "matmul: `b` has shape [4, 5], expected 3 along the dimension that is summed over");
    check(x.matmul(&vector, Transpose::B), "matmul: `b` has shape [6], expected two dimensions");
    check(
        x.bce_with_logits(&bias, &vector, Reduction::Mean, 1.0),
        "bce_with_logits: `target` has shape [5], expected 6 elements for an input of shape [2, 3]",
    );
    check(
        x.mse_loss(&vector, &bias, Reduction::Mean),
        "mse_loss: `weight` has shape [5], expected 2 elements for an input of shape [2, 3]",
    );
    check(x.concat_columns(&[&weight]), "concat_columns: `x` has shape [4, 5], expected 2 rows, as the first has");
    check(x.concat_columns(&[&vector]), "concat_columns: `x` has shape [6], expected two dimensions");
    check(x.columns(1..4), "columns: `x` has shape [2, 3], expected columns 1..4, at least one");
    check(x.columns(2..2), "columns: `x` has shape [2, 3], expected columns 2..2, at least one");
    check(
        x.multiply(&vector),
        "multiply: `b` has shape [6], expected a shape that broadcasts with [2, 3]: from the last dimension on, lengths that are equal or 1",
    );
    let codes = graph.constant_codes("codes", &[0, 1, 2], &[3]).expect("three codes");
    check(vector.embedding(&codes, 0, None), "embedding: `weight` has shape [6], expected two dimensions");
    check(x.embedding(&codes, 1, None), "embedding: index_col is 1, expected a column of `index`");
    check(x.embedding(&codes, 0, Some(2)), "embedding_grad: padding is 2, expected an entry of the table");
    check(
        x.embedding(&vector, 0, None),
        "net: kernel `embedding` wants 6 U32 for `index`, got 6 F32 of `values`; give a slice of that type and length, or change the sizes of the kernel",
    );
    check(x.reshape(&[7]), "reshape: `shape` has shape [7], expected 6 elements");
    check(graph.constant("c", &[1.0], &[2]), "tensor: `shape` has shape [2], expected 1 elements, those of 0..1 of `c` (1)");
    assert_eq!(n_kernels(&graph), 0, "nothing was recorded");
}

#[test]
fn ranges_beyond_the_buffer() {
    let graph = Graph::training("net");
    let buffer = Persistent::new("flat", DType::F32, 8);
    check(graph.part(&buffer, 4..10, &[6]), "tensor: `shape` has shape [6], expected 6 elements, those of 4..10 of `flat` (8)");
    let short = Persistent::new("short", DType::F32, 4);
    check(
        graph.parameter(&buffer, &short, 0..8, &[8]),
        "parameter: `shape` has shape [8], expected 8 elements, those of 0..8 of `short` (4)",
    );
}

#[test]
fn tensors_of_two_graphs() {
    let (graph, other) = (Graph::training("one"), Graph::training("two"));
    let (x, foreign) = (parameter(&graph, &[3, 3]), parameter(&other, &[3, 3]));
    let message = |op: &str, arg: &str| {
        format!("{op}: `{arg}` belongs to another graph; share values by a `Persistent` that both graphs bind")
    };
    check(x.linear(&foreign, None, Activation::Relu), &message("linear", "weight"));
    check(x.linear(&x, Some(&foreign), Activation::Relu), &message("linear", "bias"));
    check(x.matmul(&foreign, Transpose::None), &message("matmul", "b"));
    check(x.bce_with_logits(&foreign, &x, Reduction::Mean, 1.0), &message("bce_with_logits", "target"));
    check(x.mse_loss(&x, &foreign, Reduction::Mean), &message("mse_loss", "weight"));
    check(graph.backward(&foreign), &message("backward", "loss"));
    check(graph.backward_from(&x, &foreign), &message("backward", "dy"));
    check(graph.store(&foreign, &Graph::state_buffer(), &Persistent::new("all", DType::F32, 9)), &message("store", "x"));
    assert_eq!((n_kernels(&graph), n_kernels(&other)), (0, 0), "nothing was recorded");
}

#[test]
fn halves_that_are_to_be_stored() {
    let graph = Graph::inference("net");
    let logits = graph.constant_in(DType::F16, "logits", &[0.5; 4], &[4]).expect("four numbers");
    let all = Persistent::new("all", DType::F32, 4);
    check(graph.store(&logits, &Graph::state_buffer(), &all), "store: `x` is f16, expected f32; store `x.cast(DType::F32)?`");
    assert_eq!(n_kernels(&graph), 0, "nothing was recorded");
    graph.store(&logits.cast(DType::F32).expect("of floats"), &Graph::state_buffer(), &all).expect("as the error says");
}

#[test]
fn backward_without_a_tape() {
    let graph = Graph::inference("answers");
    let loss = parameter(&graph, &[]);
    let message = "backward: the graph `answers` was made for inference and keeps no tape; make it with `Graph::training`";
    let before = Graph::planned_peak_bytes(&[&graph]).expect("the graph can be planned");
    check(graph.backward(&loss), message);
    check(graph.backward_from(&loss, &loss), message);
    let after = Graph::planned_peak_bytes(&[&graph]).expect("the graph can be planned");
    assert_eq!(after, before, "no constant stays behind");
}

#[test]
fn backward_from_more_than_one_number() {
    let graph = Graph::training("net");
    let y = parameter(&graph, &[2, 3]);
    check(graph.backward(&y), "backward: the loss has shape [2, 3], expected one number; reduce it first");
    check(
        graph.backward_from(&y, &parameter(&graph, &[3, 2])),
        "backward: `dy` has shape [3, 2], expected [2, 3], that of what it is the gradient of",
    );
}

#[test]
fn backward_twice() {
    let graph = Graph::training("net");
    let loss = parameter(&graph, &[1, 1]).activate(Activation::Tanh).expect("one element");
    graph.backward(&loss).expect("the first time");
    let n = n_kernels(&graph);
    let message = "backward: the graph `net` has its backward pass already; sum the losses and go back once, or go back within `Graph::accumulate`";
    check(graph.backward(&loss), message);
    assert_eq!(n_kernels(&graph), n, "nothing was recorded");
}

#[test]
fn backward_without_parameters() {
    let graph = Graph::training("net");
    let loss = graph.constant("c", &[1.0], &[]).expect("one number");
    let message = "backward: no parameter of the graph `net` has a part in the loss, so there is nothing to train";
    check(graph.backward(&loss), message);
    // It is the same error again, and a loss that can be trained is welcome.
    check(graph.backward(&loss), message);
    let loss = parameter(&graph, &[]).activate(Activation::Tanh).expect("one element");
    graph.backward(&loss).expect("the graph is as before the refusals");
}

#[test]
fn tensors_of_no_elements_are_refused_and_do_not_panic() {
    let graph = Graph::training("net");
    let (nothing, x) = (parameter(&graph, &[0, 3]), parameter(&graph, &[2, 3]));
    let refusals = [
        nothing.linear(&x, None, Activation::Relu),
        nothing.matmul(&x, Transpose::B),
        nothing.activate(Activation::Relu),
        nothing.bce_with_logits(&nothing, &nothing, Reduction::Mean, 1.0),
        nothing.mse_loss(&nothing, &nothing, Reduction::Mean),
    ];
    for refusal in refusals {
        let error = refusal.expect_err("there is nothing to compute");
        assert!(matches!(error, Error::Program(_)), "{error:?}");
    }
    assert_eq!(n_kernels(&graph), 0, "nothing was recorded");
}
