//! From a file of collisions to a trained network: simulate or import, train with early stopping, test.
//!
//! `cargo run --release --example higgs -- --help`

mod data;
mod options;
mod simulate;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use anyhow::{Context, Result};
use brisk_examples::print;
use brisk_nn::tensor::program::{Device, Selection};
use brisk_nn::tensor::{Activation, Graph};
use brisk_nn::{Adam, Mlp, MlpConfig, ParametersBuilder, ScalerReport, Schedule};
use brisk_train::metrics::roc_auc;
use brisk_train::{
    FeedProbe, GradientClip, Outputs, Progress, ResidentRows, RunFolder, Scorer, StopFlag, Trainer, TrainerConfig, binary_labels,
    closing_table, mebibytes, rows_per_second, seconds, thousands,
};
use serde_json::json;

use data::Data;
use options::Options;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let Some(options) = Options::read(std::env::args().skip(1))? else { return Ok(()) };
    let started = Instant::now();
    options.check_json()?;

    // Where it runs.
    let selection = options.device.as_ref().map_or_else(Selection::from_env, |name| name.parse().unwrap_or_default());
    let device = Device::builder().selection(selection).open()?;
    print::note(format_args!("device: {}", device.info()));

    // What it learns from: a tenth of the training rows is held out to stop by.
    let Data { train, test, train_path, test_path, simulated } = Data::open(&options)?;
    let (n_train_rows, n_cols, columns) = (train.n_rows(), train.n_cols(), train.column_names().to_vec());
    let [train_part, valid_part] = brisk_loader::split(&train, options.seed, [0.9, 0.1])?;

    // The model.
    let mut builder = ParametersBuilder::new();
    let sizes = MlpConfig { n_inputs: n_cols, hidden: options.hidden.clone(), n_outputs: 1, activation: Activation::Relu };
    let model = Mlp::new(&mut builder, &sizes);
    let params = builder.build(options.seed);
    let optimizer = Adam::new(&params);

    // One step, one evaluation, recorded and laid out in memory before anything runs.
    let config = TrainerConfig {
        batch_rows: options.batch,
        accumulate: options.accumulate,
        precision: options.precision,
        clip: options.clip.map(GradientClip::Norm),
        max_epochs: options.epochs,
        schedule: Schedule::Constant { lr: options.lr },
        patience: options.patience,
        seed: options.seed,
        ..TrainerConfig::default()
    };
    let trainer = Trainer::new(&device, &model, &params, &optimizer, &train_part, &valid_part, config.clone());
    let trainer = of_file(&train_path, trainer)?;
    let test_labels = test_labels(&test_path, &test)?;
    let test_rows = of_file(&test_path, ResidentRows::upload(&device, "test", &test))?;
    let tester = Scorer::new(&device, &model, &params, &test_rows, trainer.scale(), 1024, options.precision)?;
    let feed = FeedProbe::new(&device, trainer.train_rows(), trainer.scale())?;
    let [step, evaluation] = trainer.graphs();
    let planned_peak_bytes = Graph::planned_peak_bytes(&[step, evaluation, tester.graph(), feed.graph()])?;
    drop(test);
    print::note(format_args!(
        "rows: {} of {n_cols} columns, {} to test on",
        thousands(n_train_rows as u64),
        thousands(test_labels.len() as u64)
    ));
    print::note(format_args!("training rows on the device: {}", trainer.train_rows().fact()));
    print::note(format_args!("parameters: {}", thousands(params.n_trained() as u64)));
    let resolved = options.precision.resolved(&device);
    print::note(format_args!("precision: {}, {resolved}", options.precision));
    print::note(format_args!("planned peak memory: {}", mebibytes(planned_peak_bytes as u64)));

    // The run.
    let name = if simulated { "higgs-simulated" } else { "higgs" };
    let folder = RunFolder::create(&options.runs, Some(name), SystemTime::now())?;
    folder.write_config(&json!({
        "device": device.info().to_string(), "simulated": simulated, "columns": columns, "hidden": options.hidden,
        "batch": options.batch, "accumulate": options.accumulate, "precision": options.precision.to_string(), "clip": options.clip,
        "epochs": options.epochs, "patience": options.patience, "lr": options.lr, "seed": options.seed,
        "skip_bad_rows": options.bad_rows == brisk_table::BadRows::Skip,
        "train": options.files.as_ref().map(|files| files.0.display().to_string()),
        "test": options.files.as_ref().map(|files| files.1.display().to_string()),
    }))?;
    let loader_rows_per_s = feed.rows_per_s()?;
    let mut outputs = Outputs {
        progress: Progress::stderr(options.epochs, trainer.train_rows().n_rows() as u64),
        folder: Some(folder.clone()),
        stop: StopFlag::on_ctrl_c()?,
    };
    let report = trainer.fit(&mut outputs)?;
    let test_auc = roc_auc(&tester.scores()?, &test_labels)?;

    // What came of it.
    let elapsed = started.elapsed().as_secs_f64();
    let info = device.info();
    if let Some(path) = &options.json {
        let results = json!({
            "device": info.to_string(), "executor": info.kind.executor(), "seed": options.seed, "rows": n_train_rows,
            "epochs": report.n_epochs, "best_epoch": report.best_epoch, "seconds": elapsed, "train_seconds": report.train_seconds,
            "loader_rows_per_s": loader_rows_per_s, "train_rows_per_s": report.train_rows_per_s,
            "planned_peak_bytes": planned_peak_bytes, "allocated_bytes": device.allocated_bytes(), "precision": options.precision.to_string(),
            "resolved": resolved.to_string(), "loss_scale": report.scaler.map(|scaler| scaler.scale), "skipped_steps": report.scaler.map(|scaler| scaler.n_skipped),
            "simulated": simulated, "parameters": params.n_trained(), "valid_auc": report.best_auc, "test_auc": test_auc,
            "run_folder": folder.path(),
        });
        let text = serde_json::to_string_pretty(&results)? + "\n";
        std::fs::write(path, text).with_context(|| format!("{}: cannot write the results", path.display()))?;
    }
    let precision = match report.scaler {
        None => format!("{}, {resolved}", options.precision),
        Some(ScalerReport { scale, n_skipped, .. }) => {
            let n_skipped = thousands(n_skipped.into());
            format!("{}, {resolved}; the loss scaled by {scale} at the end, {n_skipped} steps skipped", options.precision)
        }
    };
    let data = if simulated { "simulated collisions, not measured ones" } else { "from the files given" };
    print::result(closing_table(&[
        ("device", info.to_string()),
        ("data", data.to_owned()),
        ("rows", format!("{} to train, {} to test", thousands(n_train_rows as u64), thousands(test_labels.len() as u64))),
        ("epochs", format!("{}, the best was {}", report.n_epochs, report.best_epoch)),
        ("ended", report.ended.to_string()),
        ("precision", precision),
        ("loader rows/s", rows_per_second(loader_rows_per_s)),
        ("training rows/s", rows_per_second(report.train_rows_per_s)),
        (
            "peak memory",
            format!("{} planned, {} held", mebibytes(planned_peak_bytes as u64), mebibytes(device.allocated_bytes() as u64)),
        ),
        ("validation AUC", format!("{:.4}", report.best_auc)),
        ("test AUC", format!("{test_auc:.4}")),
        ("time", seconds(elapsed)),
        ("run folder", folder.path().display().to_string()),
    ]))
}

/// The test labels, which must be 0 or 1, and some of each: found out before anything is trained.
fn test_labels(path: &Path, test: &brisk_table::Table) -> Result<Vec<f32>> {
    let labels = of_file(path, binary_labels("test", test))?;
    of_file(path, roc_auc(&labels, &labels))?;
    Ok(labels)
}

/// What is wrong with rows is told with the file that they came from.
fn of_file<T>(path: &Path, result: Result<T, brisk_train::Error>) -> Result<T> {
    result.map_err(|error| match error {
        brisk_train::Error::Tensor(error) => error.into(),
        error => anyhow::Error::new(error).context(path.display().to_string()),
    })
}
