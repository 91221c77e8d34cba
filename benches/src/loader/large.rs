//! An epoch of training over a table twenty times as large as the memory that the process may use.

use std::path::Path;
use std::process::{ExitCode, Stdio};
use std::thread;
use std::time::Instant;

use crate::higgs_table::N_COLS;
use anyhow::{Context, Result, bail, ensure};
use brisk_loader::{Ahead, Batch, Batching, LastBatch, Loader};
use brisk_table::{ReadAhead, StreamedTable};
use serde_json::{Value, json};

use super::memory::status_bytes;
use super::memory_limit::MemoryLimit;
use super::sparse;
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

/// The first argument of the process that trains.
pub(crate) const CHILD: &str = "--train-on-large-table";
const LIMIT_BYTES: usize = 1_000_000_000;
/// Blocks of about 7 MB, of which sixteen are shuffled together.
const BLOCK_ROWS: u32 = 1 << 16;
const WINDOW_BLOCKS: u32 = 16;
/// Two windows, and some more.
const AHEAD_BYTES: usize = 320 << 20;
/// Rows that are not all zeros.
const N_MARKED: usize = 1000;

#[expect(clippy::print_stdout, reason = "the name of the limit belongs to the report")]
pub(crate) fn run(options: &Options, folder: &Path) -> Result<Vec<Row>> {
    let n_bytes = if options.scale == Scale::Smoke { 40_000_000 } else { 20_000_000_000 };
    let path = folder.join("large.safetensors");
    let table = sparse::table(&path, n_bytes)?;
    let every = table.n_rows / N_MARKED;
    table.mark(&path, (0..N_MARKED).map(|i| i * every))?;

    let limit = MemoryLimit::new(LIMIT_BYTES);
    println!(
        "a sparse table of {n_bytes} bytes, zeros except in {N_MARKED} rows, in a process limited to 1 GB by {}",
        limit.name()
    );
    let output = limit
        .command(&std::env::current_exe()?)
        .arg(CHILD)
        .arg(&path)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start a process of limited memory")?;
    std::fs::remove_file(&path)?;
    if !output.status.success() {
        bail!("the process with {LIMIT_BYTES} bytes of memory ended with {}", output.status);
    }
    let seen: Value = serde_json::from_slice(&output.stdout).context("the process prints one JSON object")?;
    let figure = |key: &str| seen[key].as_f64().with_context(|| format!("the process printed no `{key}`: {seen}"));
    let marked = N_MARKED as f64;
    ensure!(figure("rows")? == table.n_rows as f64, "an epoch had {} rows of {}", figure("rows")?, table.n_rows);
    ensure!(figure("labels")? == marked && figure("first")? == marked, "an epoch missed marked rows, or had some twice: {seen}");

    let gb = n_bytes as f64 / 1e9;
    let case = format!("an epoch over {gb} GB in 1 GB, by blocks, linear model");
    let rate = figure("rows")? / figure("seconds")?;
    let unbounded = Row {
        suite: "loader",
        case: case.clone(),
        ours: vec![rate],
        unit: "rows/s",
        reference: None,
        target: None,
        better: Better::More,
    };
    let peak = Row::at_most("loader", case + ", peak memory", vec![figure("peak_bytes")?], "B", LIMIT_BYTES as f64);
    Ok(vec![unbounded, peak])
}

/// The work of the process with limited memory: an epoch of logistic regression, over rows shuffled by blocks.
#[expect(clippy::print_stdout, reason = "the process that started this one reads it")]
pub(crate) fn child(path: &Path) -> Result<ExitCode> {
    let table = StreamedTable::open(path, &ReadAhead::new(AHEAD_BYTES))?;
    let batching = Batching::of(8192).shuffled_blocks(1, BLOCK_ROWS, WINDOW_BLOCKS).last(LastBatch::Short);
    let loader = Loader::new(&table, batching)?;
    let mut model = Linear { weights: [0.0; N_COLS], bias: 0.0 };
    let (mut n_rows, mut labels, mut first) = (0_usize, 0.0, 0.0);
    let started = Instant::now();
    thread::scope(|scope| -> Result<()> {
        let mut ahead = loader.prefetch(scope, Ahead::default());
        let mut batches = ahead.epoch(0);
        while let Some(batch) = batches.next_batch()? {
            n_rows += batch.rows;
            labels += batch.labels.iter().map(|&label| f64::from(label)).sum::<f64>();
            first += batch.features.iter().step_by(N_COLS).map(|&x| f64::from(x)).sum::<f64>();
            model.step(&batch, 0.1);
        }
        Ok(())
    })?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(model.bias.is_finite(), "the model diverged");
    let peak_bytes = status_bytes("VmHWM:").context("/proc says how much memory a process has used")?;
    println!("{}", json!({ "rows": n_rows, "labels": labels, "first": first, "seconds": seconds, "peak_bytes": peak_bytes }));
    Ok(ExitCode::SUCCESS)
}

/// Logistic regression, so that there is a training step to feed.
struct Linear {
    weights: [f32; N_COLS],
    bias: f32,
}

impl Linear {
    fn step(&mut self, batch: &Batch<'_>, lr: f32) {
        let (mut slope, mut shift) = ([0.0_f32; N_COLS], 0.0);
        for (x, &label) in batch.features.as_chunks::<N_COLS>().0.iter().zip(batch.labels) {
            let logit = self.bias + x.iter().zip(&self.weights).map(|(x, w)| x * w).sum::<f32>();
            let error = 1.0 / (1.0 + (-logit).exp()) - label;
            slope.iter_mut().zip(x).for_each(|(slope, x)| *slope += error * x);
            shift += error;
        }
        let rate = lr / batch.rows.max(1) as f32;
        self.weights.iter_mut().zip(slope).for_each(|(weight, slope)| *weight -= rate * slope);
        self.bias -= rate * shift;
    }
}
