//! Training rows per second of 28-256-256-256-1 (ReLU, f32, Adam), shuffled: brisk, PyTorch, and the limit set by the matrix
//! products.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::higgs_table::{N_COLS, checksum, higgs_table};
use anyhow::{Context, Result, bail};
use brisk_loader::{Order, Rows};
use brisk_nn::{Adam, Mlp, MlpConfig, Optimizer as _, Parameters, ParametersBuilder, StepInputs};
use brisk_program::kernels::{Epilogue, Matmul, Transpose};
use brisk_program::{Device, DeviceKind, Executable, Program};
use brisk_tensor::{Activation, DType, Graph, Persistent, Reduction};
use brisk_train::{ResidentRows, Standardisation};
use serde_json::Value;

use crate::Options;
use crate::row::{Better, Row, Table};

const BATCHES: [usize; 2] = [1024, 8192];
/// The seed of the table, and of the weights.
pub(crate) const SEED: u64 = 1;
/// Variants of PyTorch's optimizer step; brisk is compared with the fastest of each round.
const GATHERED: [&str; 3] = ["gather", "gather_foreach", "gather_fused"];

#[expect(clippy::print_stdout, reason = "what is checked before timing belongs to the report")]
pub(crate) fn run(options: &Options) -> Result<Vec<Table>> {
    let (features, labels) = higgs_table(options.n_rows, SEED);
    let sum = checksum(&features, &labels);
    println!("table of {} rows, checksum {sum}", options.n_rows);
    let rows = Rows::new(features, labels, N_COLS)?;
    let runs = BATCHES.iter().map(|&batch| Run::new(&options.device, &rows, batch)).collect::<Result<Vec<_>>>()?;

    let mut ours: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut limit: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut theirs: BTreeMap<(usize, &str), Vec<f64>> = BTreeMap::new();
    for round in 0..options.n_rounds {
        if let Some(python) = &options.peers {
            for (batch, case, figure, loss) in peer(python, options, &sum)? {
                theirs.entry((batch, case)).or_default().push(figure);
                if round == 0 {
                    println!("PyTorch {case}, batch {batch}: loss {loss:.4} over the first epoch");
                }
            }
        }
        for run in &runs {
            let (figure, loss) = run.epoch(round as u32)?;
            ours.entry(run.batch).or_default().push(figure);
            limit.entry(run.batch).or_default().push(run.products_alone()?);
            if round == 0 {
                println!("brisk, batch {}: loss {loss:.4} over the first epoch; {}", run.batch, run.step.plan());
            }
        }
    }

    let mut lines = Vec::new();
    for batch in BATCHES {
        let line = |reference, target| Row {
            suite: "higgs",
            case: format!("train, batch {batch}"),
            ours: ours[&batch].clone(),
            unit: "rows/s",
            reference,
            target,
            better: Better::More,
        };
        lines.push(line(Some(("limit:flops, its products alone".to_owned(), limit[&batch].clone())), None));
        if options.peers.is_some() {
            let best = |round: usize| GATHERED.iter().map(|case| theirs[&(batch, *case)][round]).fold(0.0, f64::max);
            let gathered: Vec<f64> = (0..options.n_rounds).map(best).collect();
            lines.push(line(Some(("PyTorch, gathered, its fastest".to_owned(), gathered)), Some(1.4)));
            let loader = theirs[&(batch, "dataloader")].clone();
            lines.push(line(Some(("PyTorch, DataLoader".to_owned(), loader)), Some(2.5)));
        }
    }
    Ok(vec![Table { device: options.device.info().clone(), rows: lines }])
}

/// The trained network: 28-256-256-256-1 with ReLU.
pub(crate) fn sizes() -> MlpConfig {
    MlpConfig { n_inputs: N_COLS, hidden: vec![256; 3], n_outputs: 1, activation: Activation::relu() }
}

/// The recorded step at one batch size.
pub(crate) struct Run {
    device: Device,
    rows: ResidentRows,
    params: Parameters,
    inputs: StepInputs,
    losses: Persistent,
    step: Executable,
    products: Executable,
    batch: usize,
}

impl Run {
    pub(crate) fn new(device: &Device, rows: &Rows, batch: usize) -> Result<Self> {
        let mut builder = ParametersBuilder::new();
        let model = Mlp::new(&mut builder, &sizes());
        let params = builder.build(SEED);
        let optimizer = Adam::new(&params);
        let rows = ResidentRows::upload(device, "train", rows)?;
        let scale = Standardisation::new(vec![0.0; N_COLS], vec![1.0; N_COLS]);
        scale.write(device)?;
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        device.write(&inputs.lr, &[1e-3_f32])?;
        let losses = Persistent::new("losses", DType::F32, rows.n_batches(batch));

        let graph = Graph::training("higgs");
        let tensors = rows.record(&graph, &scale, &inputs.state, batch);
        let logits = model.forward(&params.bind(&graph), &tensors.x);
        let loss = logits.bce_with_logits(&tensors.labels, &tensors.weights, Reduction::Mean, 1.0);
        graph.backward(&loss)?;
        optimizer.record(&graph, &params, &inputs);
        graph.store(&loss, &inputs.state, &losses);
        graph.advance(&inputs.state);
        let step = graph.compile(device)?;
        let products = products(batch)?;
        let products = device.compile(&products)?;
        Ok(Self { device: device.clone(), rows, params, inputs, losses, step, products, batch })
    }

    /// One epoch over shuffled rows from the initial weights: rows per second, and the mean loss.
    pub(crate) fn epoch(&self, epoch: u32) -> Result<(f64, f64)> {
        self.params.write_initial(&self.device)?;
        self.rows.set_order(&self.device, Order::Shuffled { seed: SEED }, epoch, self.batch)?;
        self.device.write(&self.inputs.state, &[0_u32; 4])?;
        // Not beyond the end of the epoch: a batch of only padding has no mean loss.
        self.step.run(self.rows.n_batches(self.batch).min(3))?;
        self.device.write(&self.inputs.state, &[0_u32; 4])?;
        self.device.wait()?;
        let started = Instant::now();
        self.step.run(self.rows.n_batches(self.batch))?;
        self.device.wait()?;
        let seconds = started.elapsed().as_secs_f64();
        let losses: Vec<f32> = self.device.read(&self.losses)?;
        let loss = losses.iter().map(|&loss| f64::from(loss)).sum::<f64>() / losses.len() as f64;
        if !loss.is_finite() {
            bail!("the loss at batch {} is {loss}: there is nothing to time", self.batch);
        }
        Ok((self.rows.n_rows() as f64 / seconds, loss))
    }

    /// Rows per second if a step consisted only of its eleven matrix products.
    fn products_alone(&self) -> Result<f64> {
        let n = (100_000 / self.batch).max(8);
        self.products.run(2)?;
        self.device.wait()?;
        let started = Instant::now();
        self.products.run(n)?;
        self.device.wait()?;
        Ok((n * self.batch) as f64 / started.elapsed().as_secs_f64())
    }
}

/// Only the matrix products of a step: forward, and both gradients of each layer except the first, which has no input gradient.
fn products(batch: usize) -> Result<Program> {
    let mut program = Program::new("products");
    let widths = [N_COLS, 256, 256, 256, 1];
    let buffer = |program: &mut Program, len| program.persistent(&Persistent::new("operand", DType::F32, len));
    for (layer, pair) in widths.windows(2).enumerate() {
        let (n_in, n_out) = (pair[0], pair[1]);
        let (x, w) = (buffer(&mut program, batch * n_in), buffer(&mut program, n_in * n_out));
        let (y, dw) = (buffer(&mut program, batch * n_out), buffer(&mut program, n_in * n_out));
        let product = |m, n, k, transpose| Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::none() };
        program.push(product(batch, n_out, n_in, Transpose::B), &[x, w, y])?;
        program.push(product(n_out, n_in, batch, Transpose::A), &[y, x, dw])?;
        if layer > 0 {
            let dx = buffer(&mut program, batch * n_in);
            program.push(product(batch, n_in, n_out, Transpose::None), &[y, w, dx])?;
        }
    }
    Ok(program)
}

/// PyTorch's figures for one round: batch size, case, rows per second, loss.
fn peer(python: &Path, options: &Options, sum: &str) -> Result<Vec<(usize, &'static str, f64, f64)>> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/peers/higgs.py");
    let device = if options.device.info().kind == DeviceKind::Gpu { "gpu" } else { "cpu" };
    let output = Command::new(python)
        .args([script, "--suite", "train", "--repeats", "1", "--rows", &options.n_rows.to_string(), "--seed", &SEED.to_string()])
        .args(["--device", device])
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("{}: cannot start", python.display()))?;
    if !output.status.success() {
        bail!("{script} failed, see above");
    }
    let mut figures = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let line: Value = serde_json::from_str(line).with_context(|| format!("{script} printed `{line}`"))?;
        if let Some(theirs) = line["checksum"].as_str() {
            if theirs != sum {
                bail!("the peer's table has checksum {theirs}, ours {sum}: they do not train on the same rows");
            }
            continue;
        }
        let case = GATHERED.iter().copied().chain(["dataloader"]).find(|&case| line["case"] == case);
        let fields = (line["batch"].as_u64(), case, line["rows_per_s"].as_f64(), line["loss"].as_f64());
        let (Some(batch), Some(case), Some(figure), Some(loss)) = fields else { bail!("{script} printed `{line}`") };
        figures.push((batch as usize, case, figure, loss));
    }
    Ok(figures)
}
