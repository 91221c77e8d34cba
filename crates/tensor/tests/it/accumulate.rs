//! A batch that is processed in parts gives the gradients of the whole batch.

use std::ops::Range;

use brisk_tensor::program::Device;
use brisk_tensor::program::kernels::sequential_order;
use brisk_tensor::{Activation, DType, Error, Graph, Persistent, Precision, Reduction, Tensor, Windows};

use crate::random::Random;

const BATCH: usize = 256;
const COLUMNS: usize = 8;
const UNITS: usize = 32;
/// A full batch and a short one, whose last parts have no rows at all.
const TABLE: usize = BATCH + 70;

struct Step {
    graph: Graph,
    buffers: [Persistent; 2],
    order: Persistent,
    state: Persistent,
    table: Windows,
    standard: [Persistent; 2],
    losses: Persistent,
}

impl Step {
    fn record(n_parts: usize, precision: Precision) -> Result<Self, Error> {
        let buffer = |name, len| Persistent::new(name, DType::F32, len);
        let n_hidden = UNITS * COLUMNS;
        let buffers = ["values", "grads"].map(|name| buffer(name, n_hidden + UNITS * UNITS + UNITS));
        let (order, state, losses) = (Graph::order_buffer(), Graph::state_buffer(), buffer("losses", 2));
        let table = Windows::new("table", DType::F32, TABLE, COLUMNS, usize::MAX);
        let standard = ["mean", "inv_std"].map(|name| buffer(name, COLUMNS));
        let graph = Graph::training("parts");
        let parameter = |range: Range<usize>, shape: &[usize]| graph.parameter(&buffers[0], &buffers[1], range, shape);
        let hidden = parameter(0..n_hidden, &[UNITS, COLUMNS]);
        let square = parameter(n_hidden..n_hidden + UNITS * UNITS, &[UNITS, UNITS]);
        let head = parameter(n_hidden + UNITS * UNITS..n_hidden + UNITS * UNITS + UNITS, &[1, UNITS]);
        let n = BATCH / n_parts;
        let targets = graph.constant("targets", &(0..n).map(|i| (i % 2) as f32).collect::<Vec<_>>(), &[n]);
        let shares = graph.batch(&order, &state, BATCH).weights.shares();
        let part = |i: usize| -> Result<Tensor, Error> {
            let rows = i * n..(i + 1) * n;
            let batch = graph.batch_part(&order, &state, rows.clone());
            let x = graph.gather(&batch, &table, &standard[0], &standard[1]);
            let weights = shares.narrow(0, rows);
            let loss = graph.autocast(precision, || {
                let x = x.linear(&hidden, None, Activation::tanh()).linear(&square, None, Activation::tanh());
                x.linear(&head, None, Activation::identity()).bce_with_logits(&targets, &weights, Reduction::Sum, 1.0)
            });
            graph.backward(&loss)?;
            Ok(loss)
        };
        let first = part(0)?;
        let loss = graph.accumulate(|| (1..n_parts).try_fold(first, |sum, i| Ok::<_, Error>(sum + part(i)?)))?;
        graph.store(&loss, &state, &losses);
        graph.advance(&state);
        Ok(Self { graph, buffers, order, state, table, standard, losses })
    }

    /// The gradients of both batches, and their losses.
    fn run(&self, device: &Device) -> Result<[Vec<f32>; 3], Error> {
        let [values, grads] = &self.buffers;
        let mut random = Random::new(5);
        device.write(values, &random.floats(values.len()).iter().map(|v| v / 4.0).collect::<Vec<_>>())?;
        // The backward pass replaces these values.
        device.write(grads, &vec![7.0_f32; grads.len()])?;
        self.table.write(device, 0, &random.floats(TABLE * COLUMNS))?;
        device.write(&self.standard[1], &[1.0_f32; COLUMNS])?;
        device.write(&self.order, &sequential_order(TABLE as u32, BATCH as u32, 0))?;
        device.write(&self.state, &[0_u32; 4])?;
        let executable = self.graph.compile(device)?;
        executable.run(1)?;
        let whole: Vec<f32> = device.read(grads)?;
        executable.run(1)?;
        Ok([whole, device.read(grads)?, device.read(&self.losses)?])
    }
}

#[track_caller]
fn close(found: &[f32], expected: &[f32], tolerance: f32) {
    let scale = expected.iter().fold(0.0_f32, |max, value| max.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!((found - expected).abs() <= tolerance * scale, "element {i}: {found}, of the whole batch {expected}");
    }
}

#[test]
fn parts_add_up_to_the_batch() -> Result<(), Error> {
    let device = Device::cpu()?;
    for (precision, tolerance) in [(Precision::F32, 2e-6), (Precision::F16, 5e-3), (Precision::Bf16, 4e-2)] {
        let whole = Step::record(1, precision)?.run(&device)?;
        assert!(whole[0].iter().any(|&grad| grad != 0.0) && whole[2][0] > 0.0, "numbers to compare");
        for n_parts in [2, 4] {
            let parts = Step::record(n_parts, precision)?.run(&device)?;
            for (parts, whole) in parts.iter().zip(&whole) {
                close(parts, whole, tolerance);
            }
        }
    }
    Ok(())
}

#[test]
fn parts_take_the_memory_of_one() -> Result<(), Error> {
    let bytes = |n_parts| {
        let step = Step::record(n_parts, Precision::F32)?;
        Ok::<_, Error>(step.graph.with_program(|program| program.plan())?.transient_bytes())
    };
    let (whole, parts) = (bytes(1)?, bytes(4)?);
    assert!(2 * parts <= whole, "{parts} bytes in four parts, {whole} in one");
    Ok(())
}

#[test]
fn what_is_accumulated_is_added_to_what_was_there() -> Result<(), Error> {
    let graph = Graph::training("added");
    let (values, grads) = (Persistent::new("values", DType::F32, 2), Persistent::new("grads", DType::F32, 2));
    let w = graph.parameter(&values, &grads, 0..2, &[1, 2]);
    let x = graph.constant("x", &[3.0, 4.0], &[1, 2]);
    let loss = x.linear(&w, None, Activation::identity());
    graph.accumulate(|| graph.backward(&loss))?;
    let device = Device::cpu()?;
    device.write(&grads, &[10.0_f32, 20.0])?;
    graph.compile(&device)?.run(3)?;
    assert_eq!(device.read::<f32>(&grads)?, [19.0, 32.0]);
    graph.backward(&loss).expect_err("a second backward pass outside of it");
    Ok(())
}
