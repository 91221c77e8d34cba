//! The planned cost of an epoch of a recipe at full width: operations, bytes, kernels and memory; and the least time that GPUs
//! would need, from the peak rates in their data sheets.

use anyhow::Result;
use brisk_nn::tensor::program::Program;
use brisk_nn::tensor::{CrossEntropyOptions, DType, Graph, Persistent, Precision, Reduction};
use brisk_nn::{Ema, GradScaler, GradScalerConfig, Module, ParametersBuilder, StepInputs};
use brisk_vision::Recipe;

use crate::options::Options;
use crate::row::{Better, Row, Table};

/// The number of training images of CIFAR-10.
const N_IMAGES: usize = 50_000;

/// The peak rates of a GPU, from its data sheet.
struct Gpu {
    name: &'static str,
    /// Operations per second in f32.
    f32_flops: f64,
    /// Operations per second of the tensor cores, in f16 with sums in f32.
    f16_matrix_flops: f64,
    /// The memory bandwidth in bytes per second.
    bytes: f64,
}

const GPUS: [Gpu; 3] = [
    Gpu { name: "RTX 4090", f32_flops: 82.6e12, f16_matrix_flops: 165.2e12, bytes: 1.008e12 },
    Gpu { name: "RX 7900 XTX", f32_flops: 61.4e12, f16_matrix_flops: 122.8e12, bytes: 0.96e12 },
    Gpu { name: "H100 SXM", f32_flops: 66.9e12, f16_matrix_flops: 989.4e12, bytes: 3.35e12 },
];

pub(super) fn run(options: &Options) -> Result<Table> {
    let mut rows = Vec::new();
    for (name, recipe) in [("Page", Recipe::page()), ("airbench", Recipe::airbench()), ("Muon", Recipe::muon())] {
        let n_steps = recipe.epoch_steps(N_IMAGES) as f64;
        let mut in_f32 = None;
        for precision in [Precision::F32, Precision::F16] {
            let program = step(&recipe, precision)?;
            let row = |what: &str, ours: f64, unit: &'static str| Row {
                suite: "cifar10",
                case: format!("{name}, batch {}, {precision}: {what}", recipe.batch_rows),
                ours: vec![ours],
                unit,
                reference: None,
                target: None,
                better: Better::Less,
            };
            let cost = program.cost();
            rows.push(row("operations per epoch", n_steps * cost.flops as f64, "flop"));
            rows.push(row("bytes per epoch", n_steps * cost.bytes as f64, "B"));
            rows.push(row("kernels per step", program.n_kernels() as f64, ""));
            let transients = program.plan()?.transient_bytes() as f64;
            let memory = row("activations and gradients", transients, "B");
            rows.push(match in_f32 {
                None => memory,
                // At most 0.6 of the memory of f32.
                Some(bytes) => Row { reference: Some(("in f32".to_owned(), vec![bytes])), target: Some(1.0 / 0.6), ..memory },
            });
            in_f32 = Some(transients);
            for gpu in &GPUS {
                let seconds = n_steps * recipe.n_epochs * roofline(&program, gpu, precision);
                rows.push(row(&format!("all epochs at the peak rates of an {}", gpu.name), seconds, "s"));
            }
        }
    }
    Ok(Table { device: options.device.info().clone(), rows })
}

/// A training step over a batch that is already on the device, without gathering and augmentation.
fn step(recipe: &Recipe, precision: Precision) -> Result<Program> {
    let mut builder = ParametersBuilder::new();
    let network = recipe.build(&mut builder);
    let params = builder.build(0);
    let optimizer = recipe.optimizer(&network, &params, N_IMAGES)?;
    let (graph, batch) = (Graph::training("step"), recipe.batch_rows);
    let n_values: usize = recipe.image().iter().product();
    let buffer = |name, dtype, shape: &[usize]| graph.tensor(&Persistent::new(name, dtype, shape.iter().product()), shape);
    let x = buffer("x", DType::F32, &[batch, n_values]);
    let (labels, weights) = (buffer("labels", DType::U32, &[batch]), buffer("weights", DType::F32, &[batch]));
    let options = CrossEntropyOptions {
        label_smoothing: recipe.label_smoothing,
        reduction: Reduction::Mean,
        ..CrossEntropyOptions::default()
    };
    let bound = params.bind(&graph);
    let loss = graph.autocast(precision, || network.forward(&bound, &x).cross_entropy(&labels, &weights, options));
    let scaler = GradScaler::new(GradScalerConfig { enabled: precision == Precision::F16, ..GradScalerConfig::default() })?;
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    scaler.backward(&loss)?;
    scaler.step(&graph, &*optimizer, &params, &inputs);
    scaler.update(&graph);
    if let Some(ema) = recipe.ema(N_IMAGES) {
        Ema::new(&params, ema).record(&graph, &params, &inputs.state);
    }
    graph.advance(&inputs.state);
    graph.check()?;
    Ok(graph.fused())
}

/// The least time in seconds for a replay of the program: each kernel takes as long as its arithmetic or its memory traffic,
/// whichever takes longer.
fn roofline(program: &Program, gpu: &Gpu, precision: Precision) -> f64 {
    let product_flops = if precision == Precision::F16 { gpu.f16_matrix_flops } else { gpu.f32_flops };
    let costs: Vec<_> = (0..=program.n_kernels()).map(|n| program.cost_since(n)).collect();
    let of_kernel = costs.windows(2).zip(program.kernel_names()).map(|(pair, name)| {
        let (flops, bytes) = ((pair[0].flops - pair[1].flops) as f64, (pair[0].bytes - pair[1].bytes) as f64);
        let is_product = name.contains("matmul") || name.contains("conv2d");
        (flops / if is_product { product_flops } else { gpu.f32_flops }).max(bytes / gpu.bytes)
    });
    of_kernel.sum()
}
