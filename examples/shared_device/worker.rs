//! One of the processes: it prepares its work, and starts each part when it is told to, at the same time as the others.

use std::io::{BufRead as _, Write as _, stdin, stdout};
use std::num::NonZero;
use std::thread::available_parallelism;
use std::time::{Instant, UNIX_EPOCH};

use anyhow::{Result, bail};
use brisk_examples::higgs::{Data, Network, Outcome};
use brisk_loader::{Order, RowSource as _};
use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_train::metrics::roc_auc;
use brisk_train::{Binary, Feed, FeedProbe, Outputs, ResidentRows, Scorer, StopFlag, Trainable, Trainer};

use crate::options::Options;

/// The line that a worker prints when it is ready for the next part.
pub(crate) const READY: &str = "ready";

/// Attempts to open an adapter that other processes keep busy, over up to six seconds.
const N_ATTEMPTS: u32 = 8;

/// How often the rows are scored, so that scoring takes long enough to measure.
const N_SCORINGS: usize = 10;

/// Works as one of `n` processes.
pub(crate) fn work(n: usize, options: &Options) -> Result<()> {
    let (started, run) = (Instant::now(), &options.run);
    // On the CPU the processes share the cores.
    let n_threads = (available_parallelism().map_or(1, NonZero::get) / n).max(1);
    let builder = Device::builder().selection(options.device.clone()).threads(n_threads);
    let device = builder.memory_limit(options.memory_bytes()).open_attempts(N_ATTEMPTS).open()?;

    let data = Data::open(run, &StopFlag::new(), &|_| {})?;
    let [train_part, valid_part] = brisk_loader::split(&data.train, run.seed, [0.9, 0.1])?;
    let Network { model, params, optimizer } = Network::new(data.train.n_cols(), run);
    let trainer = Trainer::new(&device).config(run.trainer_config()).prepare(
        Trainable::new(&model, &params, &optimizer),
        &Binary::new(),
        &train_part,
        &valid_part,
    );
    let trainer = data.of_train(trainer)?;
    let test_labels = data.test_labels()?;
    let test_rows = data.of_test(ResidentRows::upload(&device, "test", &data.test))?;
    let test_rows = Feed::of_resident(&test_rows, Order::Sequential, 1024);
    let tester = Scorer::new(&device, &model, &params, &test_rows, trainer.scale(), run.precision)?;
    let probe = FeedProbe::new(&device, trainer.train_rows(), trainer.scale())?;
    let [step, evaluation] = trainer.graphs();
    let planned_peak_bytes = Graph::planned_peak_bytes(&[step, evaluation, tester.graph(), probe.graph()])?;

    meet()?;
    let loader_rows_per_s = probe.rows_per_s()?;
    meet()?;
    let train_began = clock();
    let report = trainer.fit(&mut Outputs::default())?;
    let train_ended = clock();
    meet()?;
    let score_began = clock();
    let mut scores = Vec::new();
    for _ in 0..N_SCORINGS {
        scores = tester.scores()?;
    }
    let score_ended = clock();

    let outcome = Outcome {
        device: device.info().clone(),
        resolved: run.precision.resolved(&device).to_string(),
        n_train_rows: data.train.n_rows(),
        n_test_rows: test_labels.len(),
        n_parameters: params.n_trained(),
        loader_rows_per_s,
        test_auc: roc_auc(&scores, &test_labels)?,
        planned_peak_bytes,
        allocated_bytes: device.allocated_bytes(),
        seconds: started.elapsed().as_secs_f64(),
        folder: None,
        report,
    };
    let mut results = outcome.json(run);
    results["n_trained"] = (outcome.report.train_rows_per_s * outcome.report.train_seconds).into();
    results["n_scored"] = (N_SCORINGS * scores.len()).into();
    // Uses the clock of the host, so that times of different processes are comparable.
    results["trained"] = [train_began, train_ended].as_slice().into();
    results["scored"] = [score_began, score_ended].as_slice().into();
    say(&results.to_string())
}

/// Seconds since 1970.
fn clock() -> f64 {
    UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64()
}

/// Reports that this process is ready, and waits until all are.
fn meet() -> Result<()> {
    say(READY)?;
    match stdin().lock().read_line(&mut String::new()) {
        Ok(1..) => Ok(()),
        _ => bail!("the process that started this one has ended"),
    }
}

fn say(line: &str) -> Result<()> {
    let mut out = stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
