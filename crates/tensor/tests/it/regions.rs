//! Regions end when their recording panics.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Precision, Tensor, Transpose};

fn parameter(graph: &Graph) -> Tensor {
    let (values, grads) = (Persistent::new("values", DType::F32, 16), Persistent::new("grads", DType::F32, 16));
    graph.parameter(&values, &grads, 0..16, &[4, 4])
}

#[track_caller]
fn panics(region: impl FnOnce() -> Result<(), Error>) {
    catch_unwind(AssertUnwindSafe(region)).expect_err("what is recorded panics");
}

#[test]
fn autocast() -> Result<(), Error> {
    let graph = Graph::training("net");
    let w = parameter(&graph);
    let dtype = || w.matmul(&w, Transpose::None).dtype();
    panics(|| graph.autocast(Precision::F16, || panic!("in a region")));
    assert_eq!(dtype(), DType::F32);
    let within = graph.autocast(Precision::Bf16, || {
        panics(|| graph.autocast(Precision::F16, || panic!("in a region within")));
        dtype()
    });
    assert_eq!((within, dtype()), (DType::Bf16, DType::F32));
    Ok(())
}

#[test]
fn accumulate() -> Result<(), Error> {
    let graph = Graph::training("net");
    let loss = parameter(&graph).sum(..);
    panics(|| graph.accumulate(|| panic!("in a part")));
    graph.backward(&loss)?;
    let error = graph.backward(&loss).expect_err("gradients are not accumulated");
    assert!(matches!(error.kind(), Error::BackwardTwice { .. }), "{error:?}");
    Ok(())
}

#[test]
fn checkpoint() -> Result<(), Error> {
    let n_activates = |before: &dyn Fn(&Graph)| {
        let graph = Graph::training("net");
        let w = parameter(&graph);
        before(&graph);
        let y = graph.checkpoint(|| w.activate(Activation::gelu()).activate(Activation::gelu()));
        graph.backward(&y.multiply(&y).sum(..))?;
        let gelu = format!("{:?}", Activation::gelu().forward.clone());
        Ok::<_, Error>(graph.with_program(|program| program.to_string().lines().filter(|line| line.contains(&gelu)).count()))
    };
    let expected = n_activates(&|_| ())?;
    assert_eq!(expected, 3, "the first is computed again");
    let found = n_activates(&|graph| panics(|| graph.checkpoint(|| panic!("in a segment"))))?;
    assert_eq!(found, expected, "the next segment works as before");
    Ok(())
}
