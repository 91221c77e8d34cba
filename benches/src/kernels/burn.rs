//! A product and a training step on an adapter, compared with Burn on the same one.

use std::io::Write;
use std::path::Path;
use std::process::Command;

use crate::higgs_table::{N_COLS, higgs_table};
use anyhow::{Context, Result, ensure};
use brisk_loader::Rows;
use brisk_program::kernels::{Epilogue, Matmul, Transpose};
use brisk_program::{DeviceInfo, DeviceKind};
use serde_json::Value;
use tempfile::NamedTempFile;

use super::case::Case;
use super::turns::Turns;
use crate::higgs::{self, SEED};
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

/// A name, and a variable with its value.
type Setting = (&'static str, Option<(&'static str, &'static str)>);

const BATCH: usize = 1024;
/// Settings of Burn by environment variables; brisk is compared with the faster one of each round.
const SETTINGS: [Setting; 2] = [("with fusion", None), ("without fusion", Some(("BURN_FUSION_MAX_EXPLORATIONS", "0")))];

pub(super) fn run(options: &Options) -> Result<Table> {
    let turns = Turns::of(options);
    let n = if options.scale == Scale::Smoke { 40 } else { 1024 };
    // Both sides train on whole batches.
    let (features, labels) = higgs_table(options.n_rows.div_ceil(BATCH) * BATCH, SEED);
    let rows = labels.iter().zip(features.chunks_exact(N_COLS));
    let table: Vec<f32> = rows.flat_map(|(label, row)| [label].into_iter().chain(row)).copied().collect();
    let mut burns = match &options.burn {
        Some(program) => Some(Burns::start(program, options.device.info(), &table)?),
        None => None,
    };

    let product = Matmul { n_batch: 1, m: n, n, k: n, transpose: Transpose::None, epilogue: Epilogue::none() };
    let product = Case::new(&options.device, product, &turns)?;
    let expected = Expected::of(&table, n);
    let ours = || product.flops_per_s();
    let theirs = |burn: &mut Burn| Ok(product.cost.flops as f64 / burn.product(n, &expected)?);
    let multiplied = line(&turns, format!("WGSL, product, {n} x {n} x {n}"), "FLOP/s", 2.5, ours, &mut burns, theirs)?;

    let training = higgs::Run::new(&options.device, &Rows::new(features, labels, N_COLS)?, BATCH)?;
    let mut epoch = 0;
    let ours = || {
        epoch += 1;
        Ok(training.epoch(epoch)?.0)
    };
    let trained = line(&turns, format!("WGSL, training, batch {BATCH}"), "rows/s", 3.0, ours, &mut burns, Burn::train)?;
    Ok(Table { device: options.device.info().clone(), rows: vec![multiplied, trained] })
}

/// The rates of brisk and, if it is available, of Burn.
fn line(
    turns: &Turns,
    case: String,
    unit: &'static str,
    target: f64,
    mut ours: impl FnMut() -> Result<f64>,
    burns: &mut Option<Burns>,
    theirs: impl Fn(&mut Burn) -> Result<f64>,
) -> Result<Row> {
    let (ours, theirs) = match burns {
        None => {
            let [ours] = turns.take([&mut ours])?;
            (ours, None)
        }
        Some(burns) => {
            let [ours, theirs] = turns.take([&mut ours, &mut || burns.best(&theirs)])?;
            (ours, Some(theirs))
        }
    };
    let reference = theirs.map(|theirs| ("Burn, with or without fusion".to_owned(), theirs));
    let target = reference.is_some().then_some(target);
    Ok(Row { suite: "kernels", case, ours, unit, reference, target, better: Better::More })
}

/// Burn in each of its settings.
struct Burns {
    burns: Vec<Burn>,
    /// The file that they read when they start: rows of a label and features.
    _table: NamedTempFile,
}

impl Burns {
    fn start(program: &Path, device: &DeviceInfo, table: &[f32]) -> Result<Self> {
        let mut file = NamedTempFile::new()?;
        file.write_all(&table.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>())?;
        let burns = SETTINGS.into_iter().map(|setting| Burn::start(program, device, file.path(), setting));
        Ok(Self { burns: burns.collect::<Result<_>>()?, _table: file })
    }

    /// The highest rate of a turn of each.
    fn best(&mut self, rate: impl Fn(&mut Burn) -> Result<f64>) -> Result<f64> {
        self.burns.iter_mut().map(rate).try_fold(0.0, |best, rate| Ok(rate?.max(best)))
    }
}

/// A process of Burn, which waits for its turns.
struct Burn(Peer);

impl Burn {
    #[expect(clippy::print_stdout, reason = "the peer's first line belongs to the report")]
    fn start(program: &Path, device: &DeviceInfo, table: &Path, (name, variable): Setting) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg(if device.kind == DeviceKind::Software { "cpu" } else { "gpu" }).arg(table).envs(variable);
        // Kernels are tuned in this run: the machine may have been busier when they were tuned before.
        command.env("CUBECL_AUTOTUNE_CACHE", "0");
        let mut peer = Peer::start("Burn's side", &mut command)?;
        let line = peer.line()?;
        println!("Burn {name}: {line}");
        let adapter = object(&line)?["adapter"].as_str().unwrap_or_default().to_owned();
        ensure!(adapter == device.name, "Burn runs on `{adapter}`, ours on `{}`: there is nothing to compare", device.name);
        Ok(Self(peer))
    }

    /// Seconds of a product, after checking its sum and trace against their definitions.
    fn product(&mut self, n: usize, expected: &Expected) -> Result<f64> {
        let [seconds, sum, trace] = self.ask(&format!("matmul {n}"), ["seconds", "sum", "trace"])?;
        for (found, expected, what) in [(sum, expected.sum, "sum"), (trace, expected.trace, "trace")] {
            // The error of an element is that of some roundings of `n` terms, and these errors do not add up.
            let is_close = (found - expected).abs() <= 1e-4 * (n * n) as f64;
            ensure!(is_close, "Burn's product has the {what} {found}, expected {expected}: there is nothing to compare");
        }
        Ok(seconds)
    }

    /// Rows per second of an epoch, after checking that the loss fell.
    fn train(&mut self) -> Result<f64> {
        let question = format!("train {BATCH}");
        let [rows_per_s, first, last] = self.ask(&question, ["rows_per_s", "first_loss", "last_loss"])?;
        ensure!(last < first, "Burn's loss went from {first} to {last}: there is nothing to compare");
        Ok(rows_per_s)
    }

    /// These numbers of the process's answer.
    fn ask<const N: usize>(&mut self, question: &str, keys: [&str; N]) -> Result<[f64; N]> {
        let line = self.0.answer(question)?;
        let answer = object(&line)?;
        let figures = keys.map(|key| answer[key].as_f64().unwrap_or(f64::NAN));
        ensure!(figures.iter().all(|figure| !figure.is_nan()), "Burn's side answered `{question}` with `{line}`");
        Ok(figures)
    }
}

fn object(line: &str) -> Result<Value> {
    serde_json::from_str(line).with_context(|| format!("Burn's side printed `{line}`"))
}

/// The sum and the trace that prove that Burn computed the product.
struct Expected {
    sum: f64,
    trace: f64,
}

impl Expected {
    /// Those of the product of the first `n * n` numbers of the table by the next, where the table is repeated as needed.
    fn of(table: &[f32], n: usize) -> Self {
        let values: Vec<f32> = table.iter().cycle().take(2 * n * n).copied().collect();
        let (a, b) = values.split_at(n * n);
        let column = |k: usize| a[k..].iter().step_by(n).map(|&a| f64::from(a)).sum::<f64>();
        let row = |k: usize| b[k * n..][..n].iter().map(|&b| f64::from(b)).sum::<f64>();
        let sum = (0..n).map(|k| column(k) * row(k)).sum();
        let trace = (0..n * n).map(|at| f64::from(a[at]) * f64::from(b[at % n * n + at / n])).sum();
        Self { sum, trace }
    }
}
