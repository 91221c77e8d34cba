//! A candle training loop fed by brisk-table and brisk-loader, without the other crates of brisk.
//!
//! `cargo run --release --manifest-path examples/with_candle/Cargo.toml -- --help`

mod auc;
mod feeds;
mod options;
#[path = "../src/higgs/simulate.rs"]
mod simulate;

use std::io::Write as _;
use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use brisk_loader::{Ahead, Batching, LastBatch, Loader, RowSource, split};
use brisk_table::{AtomicFile, ColumnOptions, CsvOptions, LabelKind, Table, import_if_changed};
use candle_core::{DType, Device, Tensor};
use candle_nn::{AdamW, Module, Optimizer, ParamsAdamW, Sequential, VarBuilder, VarMap, linear, seq};
use serde_json::json;

use options::Options;

const HIDDEN: [usize; 3] = [256; 3];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let options = Options::from_command_line();

    // Data: text becomes a table once; later runs open it in microseconds. A fifth of the rows is held out.
    let table = table(&options)?;
    let [train, test] = split(&table, options.seed, [0.8, 0.2])?;
    let scale = Scale::of(&table)?;
    ensure!(train.n_rows() >= options.batch, "{} training rows do not fill a batch of {}", train.n_rows(), options.batch);

    // Model and optimizer: plain candle.
    let device = Device::Cpu;
    let weights = VarMap::new();
    let model = mlp(table.n_cols(), &VarBuilder::from_varmap(&weights, DType::F32, &device))?;
    let mut adam = AdamW::new(weights.all_vars(), ParamsAdamW { lr: options.lr, weight_decay: 0.0, ..ParamsAdamW::default() })?;

    // Training: the worker gathers the next batches while candle computes.
    let loader = Loader::new(&train, Batching::of(options.batch).shuffled(options.seed).last(LastBatch::Drop))?;
    let started = Instant::now();
    let losses = thread::scope(|scope| -> Result<Vec<f32>> {
        let mut ahead = loader.prefetch(scope, Ahead::default());
        let mut losses = Vec::new();
        for epoch in 0..options.epochs {
            let mut sum = Tensor::zeros((), DType::F32, &device)?;
            let mut batches = ahead.epoch(epoch);
            let n_batches = batches.len();
            while let Some(batch) = batches.next_batch()? {
                let x = Tensor::from_slice(batch.features, (batch.rows, table.n_cols()), &device)?;
                let y = Tensor::from_slice(batch.labels, batch.rows, &device)?;
                let loss = binary_cross_entropy(&model.forward(&scale.apply(&x)?)?.squeeze(1)?, &y)?;
                adam.backward_step(&loss)?;
                sum = (sum + loss.detach())?;
            }
            losses.push(sum.to_scalar::<f32>()? / n_batches as f32);
            eprintln!("epoch {epoch}: loss {:.4}", losses[epoch as usize]);
        }
        Ok(losses)
    })?;
    let n_steps = loader.len() * options.epochs as usize;
    let train_rows_per_s = (n_steps * options.batch) as f64 / started.elapsed().as_secs_f64();

    // Test: in order, with a short last batch.
    let (mut scores, mut labels) = (Vec::new(), Vec::new());
    let mut tests = Loader::new(&test, Batching::of(options.batch).last(LastBatch::Short))?;
    let mut batches = tests.epoch(0);
    while let Some(batch) = batches.next_batch()? {
        let x = Tensor::from_slice(batch.features, (batch.rows, table.n_cols()), &device)?;
        scores.extend(model.forward(&scale.apply(&x)?)?.squeeze(1)?.to_vec1::<f32>()?);
        labels.extend_from_slice(batch.labels);
    }
    let n_right = scores.iter().zip(&labels).filter(|&(&score, &label)| (score > 0.0) == (label > 0.5)).count();
    let test_accuracy = n_right as f64 / labels.len() as f64;
    let test_auc = auc::roc_auc(&scores, &labels).context("the test rows are all of one class")?;

    // The same batches as candle tensors, without training: the rates of the three ways.
    let rates = feeds::measure(&train, &options, &device)?;

    println!("rows                 {} to train, {} to test", train.n_rows(), test.n_rows());
    println!("loss, last epoch     {:.4}", losses.last().copied().unwrap_or(f32::NAN));
    println!("test AUC             {test_auc:.4}");
    println!("test accuracy        {test_accuracy:.4}");
    println!("training             {train_rows_per_s:.0} rows/s");
    println!("shuffled batches of {} as candle tensors, without training:", options.batch);
    for (what, rate) in [
        ("brisk-loader, one worker ahead", rates.brisk),
        ("candle, index_select of the table", rates.index_select),
        ("candle, a tensor a row, stacked", rates.stacked),
    ] {
        println!("  {what:34} {rate:>12.0} rows/s   {:.2}x", rates.brisk / rate);
    }
    if let Some(path) = &options.json {
        let results = json!({
            "device": "cpu", "executor": "candle", "seed": options.seed, "rows": train.n_rows(), "epochs": options.epochs,
            "seconds": started.elapsed().as_secs_f64(), "precision": "f32", "simulated": options.csv.is_none(),
            "loss": losses.last(), "test_auc": test_auc, "test_accuracy": test_accuracy,
            "train_rows_per_s": train_rows_per_s, "loader_rows_per_s": rates.brisk,
            "candle_index_select_rows_per_s": rates.index_select, "candle_stacked_rows_per_s": rates.stacked,
        });
        let text = serde_json::to_string_pretty(&results)? + "\n";
        let written = AtomicFile::create(path).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            Ok(file.publish()?)
        });
        written.with_context(|| format!("{}: cannot write the results", path.display()))?;
    }
    Ok(())
}

/// The rows of the file in the options, or those of simulated collisions.
fn table(options: &Options) -> Result<Table> {
    let folder = &options.data_dir;
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot make the folder", folder.display()))?;
    let csv = match &options.csv {
        Some(path) => path.clone(),
        None => simulate::simulated(folder, options.seed, 0..options.rows, &|note| eprintln!("{note}"))?,
    };
    let name = csv.file_name().context("the path names no file")?.to_string_lossy().into_owned();
    let dest = folder.join(name + ".safetensors");
    let columns = ColumnOptions { label_kind: LabelKind::Binary, ..ColumnOptions::default() };
    import_if_changed(&csv, &dest, &CsvOptions { columns, ..CsvOptions::default() }, |_| ())?;
    Ok(Table::open(&dest)?)
}

/// Standardises columns to mean 0 and standard deviation 1, with the statistics that the table stores.
struct Scale {
    mean: Tensor,
    std: Tensor,
}

impl Scale {
    fn of(table: &Table) -> Result<Self> {
        let columns = table.statistics().context("the table has no statistics")?;
        let row = |value: fn(&brisk_table::ColumnStatistics) -> f64| {
            let values: Vec<f32> = columns.iter().map(|column| value(column) as f32).collect();
            Tensor::from_vec(values, (1, columns.len()), &Device::Cpu)
        };
        // A constant column becomes 0.
        Ok(Self { mean: row(|column| column.mean)?, std: row(|column| if column.std > 0.0 { column.std } else { 1.0 })? })
    }

    fn apply(&self, x: &Tensor) -> candle_core::Result<Tensor> {
        x.broadcast_sub(&self.mean)?.broadcast_div(&self.std)
    }
}

fn mlp(n_inputs: usize, weights: &VarBuilder) -> candle_core::Result<Sequential> {
    let mut model = seq();
    let mut n_in = n_inputs;
    for (layer, n_out) in HIDDEN.into_iter().enumerate() {
        model = model.add(linear(n_in, n_out, weights.pp(layer))?).add(candle_nn::Activation::Relu);
        n_in = n_out;
    }
    Ok(model.add(linear(n_in, 1, weights.pp("out"))?))
}

/// The mean over the rows of `max(z, 0) - z y + ln(1 + exp(-|z|))`, which does not overflow for any logit; candle's own takes the
/// logarithm of a sigmoid.
fn binary_cross_entropy(logits: &Tensor, labels: &Tensor) -> candle_core::Result<Tensor> {
    let small = (logits.abs()?.neg()?.exp()? + 1.0)?.log()?;
    ((logits.relu()? - (logits * labels)?)? + small)?.mean_all()
}
