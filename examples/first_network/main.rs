//! A first network: reads letters of 28 x 28 pixels, trains, tests, and saves the model.
//!
//! `cargo run --release --example first_network`; `-- TABLE` trains on a table of your own with labels 0 to 25, as
//! `import --first-label 1` makes from the letters of EMNIST.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use brisk_examples::command_line::ServerOption;
use brisk_examples::elsewhere::LocalFile;
use brisk_examples::higgs::stopped;
use brisk_examples::run::RunOptions;
use brisk_examples::{command_line, letters, print};
use brisk_loader::split;
use brisk_nn::{Activation, Mlp, MlpConfig, Schedule};
use brisk_table::Table;
use brisk_train::{Classification, EarlyStopping, Model, Trainer};
use clap::Parser;
use serde_json::json;

const SEED: u64 = 7;
const BATCH_ROWS: usize = 256;

/// Trains a network on images of letters, tests it, and saves the model in target/letters
#[derive(Debug, Parser)]
#[command(name = "first_network")]
struct Options {
    /// Table of images of 28 x 28 pixels with labels from 0 to 25 [default: drawn letters]
    table: Option<PathBuf>,
    #[command(flatten)]
    run: RunOptions,
    #[command(flatten)]
    server: ServerOption,
}

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    let input = options.table.as_deref().map(|table| ("TABLE", table));
    options.server.apply(options.table.as_deref())?;
    let run = options.run.start(input.as_slice())?;
    let drawn = || letters::table("target/letters/letters.safetensors".as_ref(), 15_600);
    let table = options.table.as_ref().map_or_else(drawn, |path| Ok(Table::open(LocalFile::of(path)?.path())?))?;
    let [train, valid, test] = split(&table, SEED, [0.8, 0.1, 0.1])?;
    let sizes = MlpConfig { n_inputs: 784, hidden: vec![256], n_outputs: 26, activation: Activation::relu() };
    let mut model = Model::new(SEED, |params| Mlp::new(params, &sizes));
    let report = Trainer::new(&run.device)
        .batch_rows(BATCH_ROWS)
        .max_epochs(20)
        .schedule(Schedule::one_cycle(3e-3))
        .early_stopping(EarlyStopping::on("valid_accuracy").patience(5))
        .progress()
        .report("target/letters/report.html")
        .fit(&mut model, &Classification::of(26), &train, &valid)?;
    let scores = model.evaluate(&Classification::of(26), &test)?;
    model.save("target/letters/model.safetensors")?;
    let facts = json!({ "seed": SEED, "simulated": options.table.is_none(), "parameters": model.params().n_trained() });
    let written = run.finish([run.fitted(&report, &scores, &train, BATCH_ROWS)?, facts]);
    print::result(format_args!("best epoch: {}, {} {:.4}", report.best_epoch, report.watched, report.best_value))?;
    print::result(format_args!("test: {scores}"))?;
    let status = stopped::written(&report.warnings);
    let page = if status == ExitCode::SUCCESS { " and report.html" } else { "" };
    print::result(format_args!("wrote model.safetensors{page} in target/letters"))?;
    written.map(|()| status)
}
