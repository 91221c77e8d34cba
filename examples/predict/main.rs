//! Predictions for the rows of a table, from a model folder that the example `tabular` has written.
//!
//! `cargo run --release --example predict -- MODEL_FOLDER DATA --out FILE`

mod options;
mod output;
#[cfg(feature = "all-formats")]
mod parquet;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use brisk_examples::elsewhere::{LocalFile, is_url};
use brisk_examples::tabular::{Program, read};
use brisk_examples::{check_files_differ, check_output, command_line, print, write_json};
use brisk_report::{closing_table, rows_per_second, seconds, thousands};
use brisk_table::printable;
use brisk_tabular::TabularModel;
use brisk_train::StopFlag;
use serde_json::json;

use options::Options;
use output::{Cells, Output};

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    // First: the check creates a file for a moment.
    let stop = StopFlag::on_signals()?;
    let output = check(&options)?;
    let started = Instant::now();
    let device = options.device.builder().open()?;
    let model = TabularModel::load(&options.model)?;
    let predictor = model.predictor(&device)?;
    let text = options.text.added_to(model.text_options());
    let data = LocalFile::of(&options.data)?;
    let rows = read(data.path(), Program::Predict, &stop, |progress| model.read_rows_with(data.path(), &text, progress))?;
    for unseen in &rows.unseen {
        let kind = if unseen.are_all() { "warning: " } else { "" };
        print::note(format_args!("{kind}{unseen}"));
    }
    rows.far.iter().for_each(|far| print::note(format_args!("warning: {far}")));
    let computing = Instant::now();
    let predictions = predictor.predict(&rows.columns, &rows.table)?;
    let rows_per_s = predictions.n_rows() as f64 / computing.elapsed().as_secs_f64();
    let name = model.target().name();
    output.write(
        &options.out,
        name,
        &predictions,
        if options.spreadsheet { Cells::ForSpreadsheets } else { Cells::AsTheyAre },
    )?;
    if let Some(path) = &options.json {
        let results = json!({
            "device": device.info().to_string(), "executor": device.info().kind.executor(), "rows": predictions.n_rows(),
            "target": name, "task": model.target().kind().to_string(), "classes": model.target().classes(),
            "unseen": rows.unseen.iter().map(|unseen| (unseen.column.clone(), unseen.n_rows.into())).collect::<serde_json::Map<_, _>>(),
            "far": rows.far.iter().map(|far| (far.column.clone(), far.n_rows.into())).collect::<serde_json::Map<_, _>>(),
            "threshold": model.threshold().map(|at| at.value), "intervals": model.intervals().map(|intervals| intervals.coverage), "rows_per_s": rows_per_s, "seconds": started.elapsed().as_secs_f64(), "out": options.out.to_string_lossy(),
        });
        write_json(path, &results)?;
    }
    let threshold = model.threshold().map(|at| ("threshold", format!("{:.4}, for {}", at.value, at.metric)));
    let intervals = model.intervals().map(|of| ("intervals", format!("for {} % of the numbers", 100.0 * of.coverage)));
    let lines = [
        ("target", printable(name).to_string()),
        ("rows", thousands(predictions.n_rows() as u64)),
        ("predicting", format!("{} rows/s", rows_per_second(rows_per_s))),
        ("time", seconds(started.elapsed().as_secs_f64())),
        ("predictions", printable(&options.out).to_string()),
    ];
    print::result(closing_table(&lines.into_iter().chain(threshold).chain(intervals).collect::<Vec<_>>()))?;
    Ok(ExitCode::SUCCESS)
}

/// Checks the options as far as possible before any rows are read.
fn check(options: &Options) -> Result<Output> {
    let Options { data, out, json, .. } = options;
    options.server.apply([data.as_path()])?;
    let output = Output::of(out)?;
    ensure!(!options.spreadsheet || output == Output::Csv, "--spreadsheet: {} is not a CSV file", printable(out));
    ensure!(is_url(data) || data.exists(), "{}: cannot open the table: there is no such file", printable(data));
    let mut outputs = vec![("--out", out.as_path())];
    outputs.extend(json.as_deref().map(|json| ("--json", json)));
    check_files_differ(&outputs, &[("DATA", data), ("MODEL", &options.model)])?;
    outputs.into_iter().try_for_each(|(option, path)| check_output(option, path))?;
    Ok(output)
}
