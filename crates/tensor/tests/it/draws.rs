//! Random numbers of a graph: dropout, uniform and normal.

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::ORDER_LEN;
use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Tensor, Windows};

use crate::finite_difference::check_gradients;
use crate::refusal::{check_refused, parameter};

const N: usize = 1000;

/// What `record` computes in each of `n_steps` replays, the first of which is step `first`.
fn run(n_steps: usize, first: u32, record: impl Fn(&Graph) -> Tensor) -> Result<Vec<Vec<f32>>, Error> {
    let graph = Graph::training("net");
    let y = record(&graph);
    let n = y.n_elements();
    let all = Persistent::new("all", DType::F32, n_steps * n);
    graph.store(&y, &graph.state(), &all);
    graph.advance(&graph.state());
    let device = Device::cpu()?;
    let executable = graph.compile(&device)?;
    device.write(&graph.state(), &[0, first, 0, 0])?;
    executable.run(n_steps)?;
    Ok(device.read::<f32>(&all)?.chunks(n).map(<[f32]>::to_vec).collect())
}

fn ones(graph: &Graph) -> Tensor {
    graph.constant("x", &[1.0; N], &[N])
}

#[track_caller]
fn check_apart(a: &[f32], b: &[f32]) {
    let n_equal = a.iter().zip(b).filter(|(a, b)| a == b).count();
    assert!((400..600).contains(&n_equal), "{n_equal} of {N} are alike");
}

#[test]
fn each_step_layer_and_seed_draws_its_own_mask() -> Result<(), Error> {
    let steps = run(3, 0, |graph| ones(graph).dropout(0.5))?;
    check_apart(&steps[0], &steps[1]);
    check_apart(&steps[1], &steps[2]);
    assert_eq!(run(1, 2, |graph| ones(graph).dropout(0.5))?[0], steps[2], "a run that resumes at step 2");
    let second = run(1, 0, |graph| {
        let _first = ones(graph).dropout(0.5);
        ones(graph).dropout(0.5)
    })?;
    check_apart(&steps[0], &second[0]);
    let seeded = run(1, 0, |graph| ones(graph).dropout_seeded(0.5, 1))?;
    check_apart(&steps[0], &seeded[0]);
    let of_graph = run(1, 0, |graph| {
        graph.seed(1);
        ones(graph).dropout(0.5)
    })?;
    assert_eq!(of_graph, seeded);
    Ok(())
}

#[test]
fn dropout_goes_back_through_what_it_kept() {
    check_gradients(&[&[40, 3]], |_, p| p[0].dropout(0.4));
    // Two dropouts in one graph keep different elements.
    check_gradients(&[&[40, 3]], |_, p| p[0].dropout(0.4).dropout(0.4));
    check_gradients(&[&[40, 3]], |graph, p| &p[0] * graph.uniform(&[40, 1]) + graph.normal(&[3]));
}

/// Dropout is part of the product that it follows. Its gradient is that of the activation below it, from the result of dropout,
/// or part of the product that it follows, too.
#[test]
fn dropout_after_a_product_adds_no_kernel() -> Result<(), Error> {
    for activation in
        [Activation::relu(), Activation::sigmoid(), Activation::tanh(), Activation::celu(1.0), Activation::identity()]
    {
        let net = |p: &[Tensor]| {
            let hidden = p[0].linear(&p[1], None, activation.clone()).dropout(0.4);
            hidden.linear(&p[2], None, Activation::identity())
        };
        check_gradients(&[&[12, 8], &[20, 8], &[6, 20]], |_, p| net(p));
        let kernels = |p: f32| {
            let graph = Graph::training("net");
            let of = |shape: &[usize]| parameter(&graph, shape);
            let hidden = of(&[64, 32]).linear(&of(&[48, 32]), None, activation.clone()).dropout(p);
            let y = hidden.linear(&of(&[16, 48]), None, Activation::identity());
            graph.backward(&y.mean(..))?;
            Ok::<_, Error>(graph.fused().n_kernels())
        };
        assert_eq!(kernels(0.5)?, kernels(0.0)?, "with {activation:?}");
    }
    Ok(())
}

#[test]
fn dropout_is_off_in_inference_and_at_0() {
    let graph = Graph::inference("net");
    let x = graph.constant("x", &[1.0, 2.0], &[2]);
    let y = x.dropout(0.5);
    assert_eq!((y.slice(), graph.with_program(|program| program.n_kernels())), (x.slice(), 0), "the tensor itself");
    let trained = Graph::training("net");
    let _ = trained.constant("x", &[1.0, 2.0], &[2]).dropout(0.0);
    assert_eq!(trained.with_program(|program| program.n_kernels()), 0);
    let message = "dropout: p = 1.5, expected a probability, 0 to 1";
    check_refused(|graph| parameter(graph, &[2]).dropout(1.5), message);
    check_refused(|graph| parameter(graph, &[2]).dropout(f32::NAN), "dropout: p = NaN, expected a probability, 0 to 1");
    assert!(x.dropout(1.5).is_failed());
    assert_eq!(graph.check().expect_err("1.5 is no probability").kind().to_string(), message);
}

#[test]
fn a_state_that_no_step_advances_is_refused() -> Result<(), Error> {
    let device = Device::cpu()?;
    type Record = fn(&Graph) -> Tensor;
    let records: [(&str, Record); 3] = [
        ("dropout", |graph| ones(graph).dropout(0.5)),
        ("uniform", |graph| graph.uniform(&[3])),
        ("normal", |graph| graph.normal(&[3])),
    ];
    for (name, record) in records {
        let graph = Graph::training("net");
        let _drawn = record(&graph);
        // Another state does not count.
        graph.advance(&Graph::state_buffer());
        let error = graph.compile(&device).expect_err("the same numbers in each step");
        assert!(matches!(error.kind(), Error::SameDraws { op, .. } if *op == name), "{error}");
        graph.hold(&graph.state());
        graph.compile(&device)?;
    }
    let (first, second) = (Graph::training("first"), Graph::training("second"));
    second.share_state(&first.state());
    let _drawn = second.uniform(&[3]);
    second.advance(&first.state());
    second.compile(&device)?;
    Ok(())
}

#[test]
fn replicas_draw_what_one_device_draws_for_their_rows() -> Result<(), Error> {
    let (batch, columns) = (12, 50);
    let masks = |rows: std::ops::Range<usize>, shape: &[usize], n: usize| {
        let record = |graph: &Graph| {
            // Which rows these are does not matter.
            let order = Persistent::new("order", DType::U32, ORDER_LEN);
            let part = graph.batch_part(&order, &graph.state(), rows.clone());
            let table = Windows::new("table", DType::F32, 24, 1, usize::MAX);
            let statistic = |name| Persistent::new(name, DType::F32, 1);
            let _x = graph.gather(&part, &table, &statistic("mean"), &statistic("inv_std"));
            graph.constant("x", &vec![1.0; n], shape).dropout(0.5)
        };
        Ok::<_, Error>(run(1, 7, record)?.remove(0))
    };
    let whole = masks(0..batch, &[batch, columns], batch * columns)?;
    for rows in [0..5, 5..6, 6..12] {
        let n = rows.len() * columns;
        assert_eq!(masks(rows.clone(), &[rows.len(), columns], n)?, whole[rows.start * columns..][..n], "{rows:?}");
    }
    // Several entries of the first dimension for each row.
    let sequences = masks(0..batch, &[batch * 10, 5], batch * columns)?;
    assert_eq!(masks(6..12, &[60, 5], 300)?, sequences[300..]);
    // Where rows are not the first dimension, replicas still draw different numbers.
    check_apart(&masks(0..6, &[N], N)?, &masks(6..12, &[N], N)?);
    Ok(())
}

#[test]
fn normal_numbers_have_mean_0_and_variance_1() -> Result<(), Error> {
    for step in run(3, 0, |graph| graph.normal(&[100, 200]))? {
        let mean = step.iter().map(|&v| f64::from(v)).sum::<f64>() / step.len() as f64;
        let variance = step.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / step.len() as f64;
        assert!(mean.abs() < 0.035 && (variance - 1.0).abs() < 0.05, "mean {mean}, variance {variance}");
    }
    Ok(())
}
