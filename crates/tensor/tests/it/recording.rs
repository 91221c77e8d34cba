//! Errors of recording: the first one is kept with its place, nothing is recorded from failed tensors, and no error is lost.

use std::process::Command;

use brisk_tensor::program::Device;
use brisk_tensor::{Activation, Autocast, DType, Error, Graph, Persistent, Precision, Reduction, Tensor, Transpose};

use crate::refusal::{n_kernels, parameter};

#[test]
fn what_is_recorded_from_a_failed_tensor_fails() {
    let graph = Graph::training("net");
    let (x, w) = (parameter(&graph, &[2, 3]), parameter(&graph, &[4, 5]));
    let good = x.activate(Activation::relu());
    assert_eq!(n_kernels(&graph), 1);
    let failed = x.linear(&w, None, Activation::relu());
    assert_eq!((failed.shape(), failed.dtype()), (&[2, 4][..], DType::F32), "the best guess");
    let derived = [
        &failed + &good,
        good.sub(&failed),
        failed.exp(),
        failed.reshape(&[8]),
        failed.reshape(&[9]),
        failed.matmul(&w, Transpose::None),
        failed.sum(..),
        failed.sum(7),
        failed.narrow(1, 0..2),
        failed.concat(&[&failed], 0),
        failed.mse_loss(&good, &good, Reduction::Mean),
        failed.cast(DType::F16),
        graph.checkpoint(|| failed.activate(Activation::gelu())),
        graph.autocast(Precision::F16, || failed.softmax(1)),
    ];
    assert!(derived.iter().all(Tensor::is_failed));
    assert!(!good.is_failed(), "it was made before");
    graph.store(&failed, &Graph::state_buffer(), &Persistent::new("all", DType::F32, 8));
    graph.advance(&Persistent::new("not a state", DType::F32, 1));
    assert_eq!(n_kernels(&graph), 1, "nothing more was recorded");
    let error = graph.check().expect_err("the first error");
    assert!(matches!(error.kind(), Error::Shape { op: "linear", arg: "weight", .. }), "{error}");
}

#[test]
fn shapes_of_failed_tensors_are_the_best_guess() {
    let graph = Graph::training("net");
    let [x, w, images, filter] = [&[2, 3][..], &[4, 5], &[2, 8, 8, 3], &[16, 3, 3, 4]].map(|shape| parameter(&graph, shape));
    assert_eq!(x.matmul(&w, Transpose::None).shape(), [2, 5]);
    assert_eq!(x.matmul(&w, Transpose::B).shape(), [2, 4]);
    assert_eq!(images.linear(&w, None, Activation::relu()).shape(), [2, 8, 8, 4]);
    assert_eq!(images.conv2d(&filter, None, [1, 1], [1, 1], Activation::relu()).shape(), [2, 8, 8, 16]);
    assert_eq!(x.add(&w).shape(), [2, 3]);
    assert_eq!(x.global_max_pool2d().shape(), [2, 3]);
    assert_eq!(x.bce_with_logits(&w, &w, Reduction::Mean, 1.0).shape(), [0_usize; 0]);
    assert_eq!(x.reshape(&[5, 5]).shape(), [5, 5]);
    graph.check().expect_err("all of them are refused");
}

#[test]
fn backward_compile_and_planning_return_the_first_error() -> Result<(), Error> {
    let graph = Graph::training("net");
    let x = parameter(&graph, &[2, 3]);
    let loss = x.activate(Activation::tanh()).sum(..);
    x.reshape(&[7]);
    x.sum(9);
    let first = graph.check().expect_err("two refusals");
    assert_eq!(first.kind().to_string(), "reshape: `shape` has shape [7], expected 6 elements");
    assert_eq!(graph.backward(&loss), Err(first.clone()));
    assert_eq!(graph.compile(&Device::cpu()?).map(|_| ()), Err(first.clone()));
    assert_eq!(Graph::planned_peak_bytes(&[&Graph::training("other"), &graph]), Err(first));
    Ok(())
}

#[test]
fn an_error_names_the_operation_the_scope_and_the_line() {
    let graph = Graph::training("net");
    let (x, w) = (parameter(&graph, &[2, 5]), parameter(&graph, &[3, 4]));
    let line = line!() + 1;
    graph.scope("encoder", || graph.scope("conv2", || x.matmul(&w, Transpose::None)));
    let error = graph.check().expect_err("the shapes do not match");
    let expected = format!("matmul: `b` has shape [3, 4], expected [5, _] (in encoder.conv2, at {}:{line})", file!());
    assert_eq!(error.to_string(), expected);
    assert!(format!("{error:?}").contains("encoder.conv2"), "{error:?}");
}

#[test]
fn operators_methods_and_constants_report_the_line_that_calls_them() {
    #[track_caller]
    fn check(line: u32, record: impl FnOnce(&Graph, &Tensor, &Tensor)) {
        let graph = Graph::training("net");
        let (a, b) = (parameter(&graph, &[2, 3]), parameter(&graph, &[4, 5]));
        record(&graph, &a, &b);
        let error = graph.check().expect_err("the shapes do not match");
        let location = error.place().expect("errors of recording have a place").location();
        assert_eq!((location.file(), location.line()), (file!(), line), "{error}");
    }
    check(line!(), |_, a, b| drop(a + b));
    check(line!(), |_, a, b| drop(a.clone() * b.clone()));
    check(line!(), |graph, a, _| drop(1.0 - graph.constant_codes("codes", &[1], &[1]) + a));
    check(line!(), |_, a, b| drop(a.sub(b)));
    check(line!(), |_, a, b| drop(a.where_(b, a)));
    check(line!(), |_, a, _| drop(a.var(3, 1)));
    check(line!(), |_, a, b| drop(a.huber_loss(b, 1.0, brisk_tensor::LossReduction::Mean)));
    let misspelt = Autocast::new(Precision::F16).with("lineal", Precision::F32);
    check(line!(), |graph, _, _| graph.autocast(misspelt, || ()));
    check(line!(), |graph, _, _| drop(graph.constant("c", &[1.0], &[2])));
    let short = Persistent::new("short", DType::F32, 1);
    check(line!(), |graph, a, _| graph.store(a, &short, &short));
    check(line!(), |graph, _, _| graph.advance(&short));
    check(line!(), |graph, a, _| drop(graph.wrap(a.slice(), &[7])));
}

#[test]
fn scopes_nest_by_names_that_may_be_absolute() {
    let scope_of = |names: &[&str]| {
        let graph = Graph::training("net");
        let scopes: Vec<_> = names.iter().map(|name| graph.enter(name)).collect();
        parameter(&graph, &[2, 3]).reshape(&[7]);
        drop(scopes);
        parameter(&graph, &[2, 3]).reshape(&[8]);
        let error = graph.check().expect_err("two refusals");
        error.place().expect("errors of recording have a place").scope().to_owned()
    };
    assert_eq!(scope_of(&[]), "");
    assert_eq!(scope_of(&["head"]), "head");
    assert_eq!(scope_of(&["encoder", "head"]), "encoder.head");
    assert_eq!(scope_of(&["encoder", "encoder.head"]), "encoder.head");
    assert_eq!(scope_of(&["head", "head"]), "head");
    assert_eq!(scope_of(&["head", "header"]), "head.header");
}

#[test]
fn a_scope_ends_where_what_it_records_panics() {
    let graph = Graph::training("net");
    let recorded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| graph.scope("first", || panic!("in a scope"))));
    assert!(recorded.is_err());
    graph.scope("second", || graph.constant("c", &[1.0], &[2]));
    let error = graph.check().expect_err("the shape does not fit");
    assert_eq!(error.place().map(|place| place.scope()), Some("second"));
}

/// A model that calls its layer through `dyn`, like models that are assembled at run time.
#[test]
fn an_error_behind_dyn_also_names_the_caller_of_the_model() {
    trait Layer {
        fn forward(&self, x: &Tensor) -> Tensor;
    }
    struct Columns(std::ops::Range<usize>);
    impl Layer for Columns {
        fn forward(&self, x: &Tensor) -> Tensor {
            x.columns(self.0.clone())
        }
    }
    #[track_caller]
    fn forward(layers: &[Box<dyn Layer>], x: &Tensor) -> Tensor {
        let _caller = x.graph().enter_from_caller();
        layers.iter().fold(x.clone(), |x, layer| layer.forward(&x))
    }
    let graph = Graph::inference("net");
    let x = parameter(&graph, &[2, 3]);
    let line = line!() + 1;
    forward(&[Box::new(Columns(0..2)), Box::new(Columns(1..3))], &x);
    let error = graph.check().expect_err("there are two columns");
    let place = error.place().expect("errors of recording have a place");
    assert_eq!(place.outer().map(|outer| outer.line()), Some(line));
    assert!(place.location().line() < line, "the line within the layer");
    assert!(error.to_string().contains(&format!("(at {0}:{line}; recorded at {0}:", file!())), "{error}");
}

#[test]
fn kernels_of_the_caller_are_checked_too() {
    let graph = Graph::inference("net");
    let x = parameter(&graph, &[6]);
    let kernel = brisk_tensor::program::kernels::Map::binary(5, |a, b| a + b);
    graph.push(kernel, &[x.slice(), x.slice(), graph.buffer(&Graph::state_buffer())]);
    let error = graph.check().expect_err("six elements, not five");
    assert!(matches!(error.kind(), Error::Program(_)), "{error}");
    let line = line!() - 3;
    assert_eq!(error.place().map(|place| place.location().line()), Some(line));
}

/// Set in the process that [`an_error_that_nothing_returned_is_reported`] starts.
const CHILD: &str = "BRISK_TEST_RECORDING_CHILD";

#[test]
fn an_error_that_nothing_returned_is_reported() {
    const NAME: &str = "recording::an_error_that_nothing_returned_is_reported";
    if let Ok(child) = std::env::var(CHILD) {
        let graph = Graph::training("forgotten");
        let x = parameter(&graph, &[2, 3]).reshape(&[7]);
        if child == "checked" {
            graph.check().expect_err("six elements");
        }
        drop(graph);
        assert!(x.is_failed(), "the last handle is that of the tensor");
        return;
    }
    let stderr = |child: &str| {
        let test = std::env::current_exe().expect("the test has a path");
        let output = Command::new(test).args(["--exact", NAME, "--nocapture"]).env(CHILD, child).output();
        let output = output.expect("the test can be started");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stderr).expect("messages are text")
    };
    let reported = stderr("unchecked");
    let expected = "error: the graph `forgotten` was dropped with an error that was never checked: \
                    reshape: `shape` has shape [7], expected 6 elements (at ";
    assert!(reported.contains(expected), "{reported}");
    assert_eq!(reported.matches("forgotten").count(), 1, "once: {reported}");
    let reported = stderr("checked");
    assert!(!reported.contains("forgotten"), "{reported}");
}

#[test]
fn a_backtrace_is_kept_where_the_environment_asks_for_one() {
    const NAME: &str = "recording::a_backtrace_is_kept_where_the_environment_asks_for_one";
    if std::env::var_os(CHILD).is_some() {
        let graph = Graph::training("net");
        parameter(&graph, &[2, 3]).reshape(&[7]);
        let error = graph.check().expect_err("six elements");
        let has_backtrace = error.place().is_some_and(|place| place.backtrace().is_some());
        assert_eq!(has_backtrace, std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0"));
        assert!(!error.to_string().contains('\n'), "the message is one line");
        return;
    }
    for backtrace in ["0", "1"] {
        let test = std::env::current_exe().expect("the test has a path");
        let mut command = Command::new(test);
        command.args(["--exact", NAME, "--nocapture"]).env(CHILD, "1").env("RUST_BACKTRACE", backtrace);
        let output = command.env_remove("RUST_LIB_BACKTRACE").output().expect("the test can be started");
        assert!(output.status.success(), "RUST_BACKTRACE={backtrace}: {output:?}");
    }
}
