//! Predictions for the rows of a table, from a folder of a model, or of models of several targets, that the example `tabular` has
//! written.
//!
//! `cargo run --release --example predict -- MODEL_FOLDER DATA --out FILE`

mod options;
mod output;
#[cfg(feature = "all-formats")]
mod parquet;
mod scored;

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use brisk_examples::elsewhere::{LocalFile, is_url};
use brisk_examples::tabular::{Program, read};
use brisk_examples::{check_files_differ, check_model, check_output, command_line, print, write_json};
use brisk_report::{closing_table, rows_per_second, seconds, thousands};
use brisk_table::printable;
use brisk_tabular::{TabularModel, TabularModels, TabularRows, TextOptions};
use brisk_train::StopFlag;
use serde_json::{Map, Value, json};

use options::Options;
use output::{Cells, Kept, Output, Predicted};

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    // First: the check creates a file for a moment.
    let stop = StopFlag::on_signals()?;
    let output = check(&options)?;
    let started = Instant::now();
    let device = options.device.builder().open()?;
    let models = TabularModels::load(&options.model)?;
    output.check(&options.out, &models)?;
    let predictors = models.models().iter().map(|model| model.predictor(&device)).collect::<Result<Vec<_>, _>>()?;
    let text = options.text.added_to(models.models()[0].text_options());
    let data = LocalFile::of(&options.data)?;
    let rows = read(data.path(), Program::Predict, &stop, |progress| models.read_rows_with(data.path(), &text, progress))?;
    let mut said = HashSet::new();
    // A message about several targets is printed once.
    let mut say = |note: String| {
        if said.insert(note.clone()) {
            print::note(note);
        }
    };
    for TabularRows { unfamiliar, .. } in &rows {
        for unseen in &unfamiliar.unseen {
            let kind = if unseen.are_all() { "warning: " } else { "" };
            say(format!("{kind}{unseen}"));
        }
        if unfamiliar.n_blank_lines > 0 {
            let n = thousands(unfamiliar.n_blank_lines);
            say(format!(
                "warning: {n} blank lines are no rows, and are not predicted; write \"\" or NA where the value is missing"
            ));
        }
        unfamiliar.far.iter().for_each(|far| say(format!("warning: {far}")));
        unfamiliar.missing.iter().for_each(|missing| say(format!("warning: {missing}")));
    }
    let computing = Instant::now();
    let has_several = models.models().len() > 1;
    let predicted = predictors.iter().zip(&rows).map(|(predictor, rows)| {
        let name = predictor.target().name().to_owned();
        let prefix = if has_several { format!("{name}_") } else { String::new() };
        Ok(Predicted { name, predictions: predictor.predict(&rows.columns, &rows.table)?, prefix })
    });
    let predicted: Vec<Predicted> = predicted.collect::<Result<_>>()?;
    let n_rows = predicted[0].predictions.n_rows();
    let rows_per_s = n_rows as f64 / computing.elapsed().as_secs_f64();
    let kept = kept(&options, &text, data.path(), &predicted, &stop)?;
    let scored = scored::each(&models, &predicted, data.path(), &text, &stop)?;
    output.write(&options.out, &kept, &predicted, if options.spreadsheet { Cells::ForSpreadsheets } else { Cells::AsTheyAre })?;
    if let Some(path) = &options.json {
        let mut results = json!({
            "device": device.info().to_string(), "executor": device.info().kind.executor(), "rows": n_rows,
            "rows_per_s": rows_per_s, "seconds": started.elapsed().as_secs_f64(), "out": options.out.to_string_lossy(),
        });
        let of_each = models.models().iter().zip(&rows).zip(&scored);
        let of_each =
            of_each.map(|((model, rows), scored)| of_target(model, rows).into_iter().chain(scored::json(scored)).collect());
        let targets: Vec<Map<String, Value>> = of_each.collect();
        match (&mut results, &targets[..]) {
            (Value::Object(results), [only]) => results.extend(only.clone()),
            _ => results["targets"] = json!(targets),
        }
        write_json(path, &results)?;
    }
    for scored in scored.iter().flatten() {
        print::result(scored.table())?;
    }
    let mut lines = Vec::new();
    for model in models.models() {
        lines.push(("target", printable(model.target().name()).to_string()));
        lines.extend(model.threshold().map(|at| ("threshold", format!("{:.4}, for {}", at.value, at.metric))));
        lines.extend(model.intervals().map(|of| ("intervals", format!("for {} % of the numbers", 100.0 * of.coverage))));
    }
    lines.extend([
        ("rows", thousands(n_rows as u64)),
        ("predicting", format!("{} rows/s", rows_per_second(rows_per_s))),
        ("time", seconds(started.elapsed().as_secs_f64())),
        ("predictions", printable(&options.out).to_string()),
    ]);
    print::result(closing_table(&lines))?;
    Ok(ExitCode::SUCCESS)
}

/// The columns of `--keep`.
fn kept(options: &Options, text: &TextOptions, file: &Path, predicted: &[Predicted], stop: &StopFlag) -> Result<Vec<Kept>> {
    if options.keep.is_empty() {
        return Ok(Vec::new());
    }
    let kept = read(file, Program::Predict, stop, |progress| text.read_cells(file, &options.keep, progress))?;
    let n_rows = predicted[0].predictions.n_rows();
    let mut names: HashSet<String> = predicted.iter().flat_map(Predicted::names).collect();
    for (name, cells) in &kept {
        let column = printable(name);
        ensure!(
            names.insert(name.clone()),
            "--keep {column}: there is a column of this name in the output already; leave it out"
        );
        ensure!(cells.len() == n_rows, "--keep {column}: it has {} cells for {n_rows} rows", cells.len());
    }
    Ok(kept)
}

/// What the results say about a target.
fn of_target(model: &TabularModel, rows: &TabularRows) -> Map<String, Value> {
    let unseen = rows.unfamiliar.unseen.iter().map(|unseen| (unseen.column.clone(), unseen.n_rows.into())).collect::<Map<_, _>>();
    let far = rows.unfamiliar.far.iter().map(|far| (far.column.clone(), far.n_rows.into())).collect::<Map<_, _>>();
    let missing =
        rows.unfamiliar.missing.iter().map(|missing| (missing.column.clone(), missing.n_missing.into())).collect::<Map<_, _>>();
    let facts = [
        ("target", json!(model.target().name())),
        ("task", json!(model.target().kind().to_string())),
        ("classes", json!(model.target().classes())),
        ("unseen", unseen.into()),
        ("far", far.into()),
        ("missing", missing.into()),
        ("threshold", json!(model.threshold().map(|at| at.value))),
        ("intervals", json!(model.intervals().map(|intervals| intervals.coverage))),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Checks the options as far as possible before any rows are read.
fn check(options: &Options) -> Result<Output> {
    let Options { data, out, json, .. } = options;
    options.server.apply([data.as_path()])?;
    check_model(&options.model)?;
    let output = Output::of(out)?;
    ensure!(
        options.keep.is_empty() || output != Output::Table,
        "--keep: a brisk table has no columns of text; write .csv or .parquet"
    );
    ensure!(!options.spreadsheet || output == Output::Csv, "--spreadsheet: {} is not a CSV file", printable(out));
    ensure!(is_url(data) || data.exists(), "{}: cannot open the table: there is no such file", printable(data));
    let mut outputs = vec![("--out", out.as_path())];
    outputs.extend(json.as_deref().map(|json| ("--json", json)));
    check_files_differ(&outputs, &[("DATA", data), ("MODEL", &options.model)])?;
    outputs.into_iter().try_for_each(|(option, path)| check_output(option, path))?;
    Ok(output)
}
