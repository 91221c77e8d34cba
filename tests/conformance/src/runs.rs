//! Whole training runs: one recorded step, replayed over the epochs, losses collected on the device.

use anyhow::Result;
use brisk_nn::{Init, ParametersBuilder, StepInputs};
use brisk_program::Device;
use brisk_program::kernels::sequential_order;
use brisk_tensor::{Activation, DType, Graph, Persistent, Reduction, Windows};
use brisk_train::{DataParallel, ReduceOp};

use crate::case::{Case, Outputs};
use crate::form::Form;
use crate::optimizers;

const LAYERS: [&str; 6] = ["w1", "b1", "w2", "b2", "w3", "b3"];

pub(crate) fn run(case: &Case, device: &Device, form: Form) -> Result<Option<Outputs>> {
    run_on(case, device, form, DataParallel::single())
}

/// The same with the rows of each batch split across replicas.
pub(crate) fn run_on(case: &Case, device: &Device, form: Form, replica: &DataParallel) -> Result<Option<Outputs>> {
    if case.op != "train_mlp" {
        return Ok(None);
    }
    let (batch, n_steps) = (case.number("batch")? as usize, case.number("steps")? as usize);
    let (x, y) = (case.tensor("in.x")?, case.tensor("in.y")?);
    let n_rows = x.shape[0];
    let n_batches = n_rows.div_ceil(batch);

    let mut builder = ParametersBuilder::new();
    let mut ids = Vec::new();
    for name in LAYERS {
        ids.push(builder.add(name, &case.tensor(&format!("in.{name}"))?.shape, Init::Constant(0.0)));
    }
    let mut params = builder.build(0);
    for (&id, name) in ids.iter().zip(LAYERS) {
        params.set_initial(id, &case.tensor(&format!("in.{name}"))?.floats)?;
    }
    params.write_initial(device)?;

    let buffer = |name: &str, values: &[f32]| -> Result<Persistent> {
        let persistent = Persistent::new(name, DType::F32, values.len());
        device.write(&persistent, values)?;
        Ok(persistent)
    };
    let (table, labels) = (buffer("x", &x.floats)?, buffer("y", &y.floats)?);
    let (zeros, ones) = (buffer("zeros", &vec![0.0; x.shape[1]])?, buffer("ones", &vec![1.0; x.shape[1]])?);
    let (zero, one) = (buffer("zero", &[0.0])?, buffer("one", &[1.0])?);
    let inputs = StepInputs { lr: buffer("lr", &[case.number("lr")? as f32])?, state: Graph::state_buffer() };
    let losses = buffer("losses", &vec![0.0; n_batches])?;
    let order = Graph::order_buffer();
    device.write(&order, &sequential_order(n_rows as u32, batch as u32, 0))?;

    let graph = Graph::training("train_mlp");
    let bound = params.bind(&graph);
    let part = replica.part_of(batch);
    let rows = graph.batch_part(&order, &inputs.state, part.clone());
    // The losses of all parts, weighted by shares of the whole batch, add up to its mean.
    let (weights, reduction) = match replica.world_size() {
        1 => (rows.weights.clone(), Reduction::Mean),
        _ => (graph.batch(&order, &inputs.state, batch).weights.shares().narrow(0, part), Reduction::Sum),
    };
    let mut hidden = graph.gather(&rows, &Windows::whole(&table, x.shape[1])?, &zeros, &ones);
    let target = graph.gather(&rows, &Windows::whole(&labels, 1)?, &zero, &one);
    let loss = graph.autocast(form.autocast(), || {
        for (i, pair) in ids.chunks_exact(2).enumerate() {
            let activation = if i == 2 { Activation::identity() } else { Activation::relu() };
            let weight = form.operand(bound.tensor(pair[0]));
            hidden = form.operand(&hidden).linear(&weight, Some(bound.tensor(pair[1])), activation);
        }
        form.operand(&hidden).bce_with_logits(&target, &weights, reduction, 1.0)
    });
    let scaler = optimizers::scaler(form)?;
    scaler.write_initial(device)?;
    scaler.backward(&loss)?;
    replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Sum, None);
    let loss = replica.all_reduce(&graph, &loss, ReduceOp::Sum);
    scaler.step(&graph, optimizers::make(case, case.word("optimizer")?, &params)?.as_ref(), &params, &inputs);
    scaler.update(&graph);
    graph.store(&loss, &inputs.state, &losses);
    graph.advance(&inputs.state);
    let step = graph.compile(device)?;

    let mut path = Vec::with_capacity(n_steps);
    while path.len() < n_steps {
        let n = n_batches.min(n_steps - path.len());
        device.write(&inputs.state, &[0, path.len() as u32, 0, 0])?;
        step.run(n)?;
        path.extend_from_slice(&device.read::<f32>(&losses)?[..n]);
    }
    let mut outputs = vec![("out.loss".to_owned(), path)];
    let values: Vec<f32> = device.read(params.values())?;
    for entry in params.entries() {
        outputs.push((format!("out.{}", entry.name), values[entry.range.clone()].to_vec()));
    }
    Ok(Some(outputs))
}
