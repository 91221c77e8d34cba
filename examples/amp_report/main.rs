//! The type in which each operation of a training step runs under autocast, and the memory that the step takes.
//!
//! `cargo run --release --example amp_report -- --help`

mod models;
mod options;

use std::ops::Range;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brisk_examples::command_line::usage_error;
use brisk_examples::{check_output, command_line, print, write_json};
use brisk_nn::tensor::program::{Device, Plan};
use brisk_nn::tensor::{CrossEntropyOptions, DType, Graph, GraphReport, Mode, Persistent, Precision, Tensor};
use brisk_nn::{Adam, GradScaler, GradScalerConfig, Parameters, ParametersBuilder, Philox, StepInputs};
use brisk_report::mebibytes;
use clap::error::ErrorKind;
use serde_json::{Value, json};

use models::{Activations, Model, N_CLASSES};
use options::Options;

/// Bytes of a MiB.
const MIB: f64 = (1 << 20) as f64;
const SEED: u64 = 1;

/// Small enough that no first step of these models overflows.
const LOSS_SCALE: f32 = 1024.0;

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    if let Some(path) = &options.json {
        check_output("--json", path)?;
    }
    let Options { precision, batch, .. } = options;
    if options.f16_accumulation && precision != Precision::F16 {
        let message =
            format!("--f16-accumulation has no effect on --precision {precision}; leave it out, or use --precision f16");
        return Err(usage_error::<Options>(ErrorKind::ArgumentConflict, message));
    }
    let device = options.device.builder();
    let device = if options.f16_accumulation { device.allow_f16_accumulation() } else { device }.open()?;
    let mut builder = ParametersBuilder::new();
    let model = Model::new(options.model, &mut builder);
    let params = builder.build(SEED);
    let data = Data::new(&model, batch);
    let record = |mode, precision, activations| Step::record(&model, &params, &data, mode, precision, activations);

    let mixed = record(Mode::Training, precision, Activations::Kept)?;
    let single = record(Mode::Training, Precision::F32, Activations::Kept)?;
    let name = options.model.name();
    let resolved = precision.resolved(&device);
    print::result(format_args!("{name}, batch of {batch}, {precision}, on {}: {resolved}\n\n{}", device.info(), mixed.report))?;
    let n_casts = mixed.report.casts().count();
    let n_of_parameters = mixed.report.casts().filter(|cast| cast.is_parameter_cast).count();
    let (bytes, in_f32) = (mixed.report.bytes() as f64, mixed.report.bytes_in_f32() as f64);
    print::result(format_args!(
        "{n_of_parameters} casts of parameters, {} of other values; {:.1} MiB of {:.1} saved, {:.0} %\n",
        n_casts - n_of_parameters,
        (in_f32 - bytes) / MIB,
        in_f32 / MIB,
        100.0 * (in_f32 - bytes) / in_f32
    ))?;

    let plans = [
        ("training in f32", single.plan()?),
        ("  in four parts", record(Mode::Training, Precision::F32, Activations::OfQuarters)?.plan()?),
        ("  with checkpoints", record(Mode::Training, Precision::F32, Activations::ComputedAgain)?.plan()?),
        ("training", mixed.plan()?),
        ("  in four parts", record(Mode::Training, precision, Activations::OfQuarters)?.plan()?),
        ("  with checkpoints", record(Mode::Training, precision, Activations::ComputedAgain)?.plan()?),
        ("inference in f32", record(Mode::Inference, Precision::F32, Activations::Kept)?.plan()?),
        ("inference", record(Mode::Inference, precision, Activations::Kept)?.plan()?),
    ];
    print::result(memory_table(&plans, precision))?;

    let expected = single.first(&device, &params, &data)?;
    let found = mixed.first(&device, &params, &data)?;
    let difference = found.difference(&expected);
    print::result(format_args!(
        "first step: the loss is {:.5}, in f32 {:.5}; the gradients differ from those in f32 by {difference:.1e} of their norm",
        found.loss, expected.loss
    ))?;

    if let Some(path) = &options.json {
        let keys = [
            "training_f32",
            "training_f32_in_parts",
            "training_f32_checkpoints",
            "training",
            "training_in_parts",
            "training_checkpoints",
            "inference_f32",
            "inference",
        ];
        let bytes = |plan: &Plan| json!({ "persistent": plan.persistent_bytes(), "transient": plan.transient_bytes(), "peak": plan.peak_bytes() });
        let planned: serde_json::Map<String, Value> =
            keys.iter().zip(&plans).map(|(key, (_, plan))| (String::from(*key), bytes(plan))).collect();
        let results = json!({
            "device": device.info().name, "executor": device.info().kind.executor(), "simulated": true, "seed": SEED,
            "model": name, "precision": precision.to_string(), "resolved": resolved.to_string(), "rows": batch,
            "operations": operations(&mixed.report), "bytes": mixed.report.bytes(), "bytes_in_f32": mixed.report.bytes_in_f32(),
            "planned_bytes": planned, "planned_peak_bytes": plans[3].1.peak_bytes(),
            "loss": found.loss, "loss_in_f32": expected.loss, "gradient_difference": difference,
        });
        write_json(path, &results)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Rows of noise, and their classes.
struct Data {
    x: Persistent,
    x_shape: Vec<usize>,
    classes: Persistent,
    weights: Persistent,
}

impl Data {
    fn new(model: &Model, batch: usize) -> Self {
        let x_shape = [&[batch], &model.row_shape[..]].concat();
        let x = Persistent::new("x", DType::F32, x_shape.iter().product());
        let classes = Persistent::new("classes", DType::U32, batch);
        Self { x, x_shape, classes, weights: Persistent::new("weights", DType::F32, batch) }
    }

    fn write(&self, device: &Device) -> Result<()> {
        let noise = Philox::new(SEED);
        let x: Vec<f32> = (0..self.x.len()).map(|i| 2.0 * noise.uniform(u32::MAX, i as u64) - 1.0).collect();
        let classes: Vec<u32> = (0..self.classes.len()).map(|row| (row % N_CLASSES) as u32).collect();
        device.write(&self.x, &x)?;
        device.write(&self.classes, &classes)?;
        device.write(&self.weights, &vec![1.0_f32; self.weights.len()])?;
        Ok(())
    }
}

/// One recorded step: forward pass, loss, and in training the update of the parameters.
struct Step {
    graph: Graph,
    report: GraphReport,
    loss: Persistent,
    scaler: GradScaler,
    lr: Persistent,
}

/// The results of the first step.
struct First {
    loss: f32,
    grads: Vec<f32>,
}

impl Step {
    fn record(
        model: &Model,
        params: &Parameters,
        data: &Data,
        mode: Mode,
        precision: Precision,
        activations: Activations,
    ) -> Result<Self> {
        let graph = Graph::new("step", mode);
        let bound = params.bind(&graph);
        let (n_rows, row_len) = (data.x_shape[0], data.x.len() / data.x_shape[0]);
        let loss_of = |rows: Range<usize>| {
            let x_shape = [&[rows.len()], &data.x_shape[1..]].concat();
            let x = graph.part(&data.x, rows.start * row_len..rows.end * row_len, &x_shape);
            let column = |persistent| graph.part(persistent, rows.clone(), &[rows.len()]);
            let (classes, weights) = (column(&data.classes), column(&data.weights));
            graph.autocast(precision, || {
                let logits = model.forward(&bound, &x, activations);
                logits.cross_entropy(&classes, &weights, CrossEntropyOptions::default())
            })
        };
        let n_parts = if activations == Activations::OfQuarters { n_rows.min(4) } else { 1 };
        let cut = |part: usize| n_rows * part / n_parts;
        // The mean of a part is weighted by its number of rows.
        let part_of_loss = |part: usize| -> Tensor {
            let rows = cut(part)..cut(part + 1);
            let share = rows.len() as f32 / n_rows as f32;
            let loss = loss_of(rows);
            if n_parts == 1 { loss } else { loss * share }
        };
        let mut loss = part_of_loss(0);
        let n_operations = graph.report().operations.len();
        let config =
            GradScalerConfig { init_scale: LOSS_SCALE, enabled: precision == Precision::F16, ..GradScalerConfig::default() };
        let scaler = GradScaler::new(config)?;
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        if mode == Mode::Training {
            scaler.backward(&loss)?;
            for part in 1..n_parts {
                let of_part = part_of_loss(part);
                graph.accumulate(|| scaler.backward(&of_part))?;
                loss = loss + of_part;
            }
            scaler.step(&graph, &Adam::new(params), params, &inputs);
            scaler.update(&graph);
        }
        let stored = Persistent::new("loss", DType::F32, 1);
        graph.store(&loss, &inputs.state, &stored);
        graph.advance(&inputs.state);
        // The forward pass of the first part. Which kernels are fused also depends on the backward pass.
        let mut report = graph.report();
        report.operations.truncate(n_operations);
        Ok(Self { graph, report, loss: stored, scaler, lr: inputs.lr })
    }

    fn plan(&self) -> Result<Plan> {
        Ok(self.graph.with_program(|program| program.plan())?)
    }

    /// Runs one step from the initial parameters.
    fn first(&self, device: &Device, params: &Parameters, data: &Data) -> Result<First> {
        data.write(device)?;
        params.write_initial(device)?;
        self.scaler.write_initial(device)?;
        device.write(&self.lr, &[1e-3_f32])?;
        self.graph.compile(device)?.run(1)?;
        let loss = device.read::<f32>(&self.loss)?.first().copied().context("a loss is one number")?;
        Ok(First { loss, grads: device.read(params.grads())? })
    }
}

impl First {
    /// The norm of the difference between the gradients, relative to that of `other`.
    fn difference(&self, other: &Self) -> f64 {
        let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
        let apart = norm(&mut self.grads.iter().zip(&other.grads).map(|(a, b)| f64::from(*a) - f64::from(*b)));
        apart / norm(&mut other.grads.iter().map(|&value| f64::from(value)))
    }
}

fn memory_table(plans: &[(&str, Plan)], precision: Precision) -> String {
    let of_training = plans[0].1.transient_bytes() as f64;
    let mut table =
        format!("{:<22} {:>12} {:>12} {:>12} {:>24}\n", "planned", "persistent", "transient", "peak", "transient, of f32's");
    for (name, plan) in plans {
        let name =
            if name.contains("f32") || name.starts_with(' ') { String::from(*name) } else { format!("{name} in {precision}") };
        let [persistent, transient, peak] =
            [plan.persistent_bytes(), plan.transient_bytes(), plan.peak_bytes()].map(|bytes| mebibytes(bytes as u64));
        let share = plan.transient_bytes() as f64 / of_training;
        table += &format!("{name:<22} {persistent:>12} {transient:>12} {peak:>12} {share:>24.2}\n");
    }
    table
}

fn operations(report: &GraphReport) -> Vec<Value> {
    let operation = |operation: &brisk_nn::tensor::RecordedOperation| {
        json!({
            "name": operation.name, "shape": operation.shape, "dtype": operation.dtype.to_string(),
            "operands": operation.operands.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "bytes": operation.bytes(), "bytes_in_f32": operation.bytes_in_f32(), "is_parameter_cast": operation.is_parameter_cast,
        })
    };
    report.operations.iter().map(operation).collect()
}
