//! From a table of any format to a trained network: finds the kinds of the columns and of the target, trains, tests, and writes a model folder.
//!
//! `cargo run --release --example tabular -- DATA [--target COLUMN]`

mod options;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, ensure};
use brisk_examples::command_line::Given;
use brisk_examples::higgs::stopped::{self, StartedBy};
use brisk_examples::tabular::{Program, read};
use brisk_examples::{check_files_differ, check_folder, check_output, command_line, print, write_json};
use brisk_loader::{RowSource, Rows, Subset, labels_of, split, stratified_split};
use brisk_nn::Adam;
use brisk_nn::tensor::Graph;
use brisk_report::{mebibytes, rows_per_second, seconds, thousands};
use brisk_table::{RowBatch, Schema, Table, TableWriter, printable};
use brisk_tabular::{
    Decoding, DetectOptions, Detected, Error as TabularError, Fitted, Fitting, Preprocessing, Reading, TabularModel,
    TabularRemedy, TabularWarning, Target, TextOptions,
};
use brisk_train::{Ended, FeedProbe, Scores, StopFlag, Trainable, Trainer};
use serde_json::{Value, json};

use options::{Kind, Options};

fn main() -> ExitCode {
    command_line::run_with_given(run)
}

fn run(options: Options, given: &[Given]) -> Result<ExitCode> {
    // First: the check creates a file for a moment.
    let stop = StopFlag::on_signals()?;
    check(&options, given)?;
    let started = Instant::now();
    let device = options.device.builder().open()?;
    print::note(format_args!("device: {}", device.info()));

    // The table: which columns are numbers, which are categories, and which is the target.
    std::fs::create_dir_all(&options.out)?;
    let detected = detect(&options, &stop)?;
    let Detected { table, columns, target, .. } = &detected;
    ensure!(table.n_rows() > 0, "{}: the table has no rows", printable(&options.data));
    let [train, valid, test] = split_rows(table, target, options.seed)?;
    print::note(format_args!(
        "rows: {} to train on, {} to validate, {} to test",
        thousands(train.n_rows() as u64),
        thousands(valid.n_rows() as u64),
        thousands(test.n_rows() as u64)
    ));

    // How columns become features, fitted to the training rows.
    let preprocessing = Preprocessing::fit(columns, &train, options.scaling)?;
    let target = target.clone().fitted_to("train", &train)?;
    let with_missing = preprocessing.numbers().iter().filter(|column| column.has_indicator).count();
    print::note(format_args!(
        "columns: {} ({with_missing} with missing values), {}",
        counted(preprocessing.numbers().len(), "number", "numbers"),
        counted(preprocessing.categories().len(), "category", "categories")
    ));
    for (column, decoding) in &columns.decoded {
        let has_hours = preprocessing.numbers().iter().any(|number| number.column == *column && number.reading == Reading::Hour);
        let how = match decoding {
            Decoding::Date if has_hours => "dates, which become year, month, weekday, hour and days",
            Decoding::Date => "dates, which become year, month, weekday and days",
            _ => "numbers close to each other, which become differences, so that they keep their digits",
        };
        print::note(format_args!("column `{}`: {how}", printable(column)));
    }
    for warning in &detected.warnings {
        let column = printable(warning.column());
        let option = match warning.remedy() {
            _ if matches!(warning, TabularWarning::Codes { .. }) => format!("`--categorical {column}` says that they are codes"),
            TabularRemedy::Drop => format!("`--drop {column}` leaves it out"),
            TabularRemedy::KeepIndex => "`--keep-index` keeps it".to_owned(),
            TabularRemedy::Correct if matches!(warning, TabularWarning::RareClass { .. }) => {
                "correct the file if it is a mistake".to_owned()
            }
            TabularRemedy::Correct => "correct the file if they mean the same".to_owned(),
            TabularRemedy::Scale => "subtract a number from the column in the file, or scale it".to_owned(),
            TabularRemedy::Header => "`--header present` or `--header absent` says which".to_owned(),
            TabularRemedy::MissingValue => {
                let value = if let TabularWarning::Outlier { value, .. } = warning { value.as_str() } else { "WORD" };
                let ranks =
                    if warning.column() == target.name() { "" } else { ", and `--scaling quantile` keeps the others apart" };
                format!("`--missing-value {value}` says that it means a missing value{ranks}")
            }
            _ if warning.column() == target.name() => "`--task classes` makes its values classes".to_owned(),
            _ => format!("`--categorical {column}` makes its values categories"),
        };
        print::note(format_args!("warning: {warning}; {option}"));
    }
    let other = if detected.target_is_guess { "; `--target COLUMN` chooses another" } else { "" };
    print::note(format_args!("target: {}, {}{other}", printable(target.name()), described(&target)));
    let preprocessed = |rows: Subset<&Table>, set: &'static str| -> Result<Rows> {
        Ok(preprocessing.over(columns, rows)?.with_target(&target).to_rows(set)?)
    };
    let (train, valid, test) = (preprocessed(train, "train")?, preprocessed(valid, "valid")?, preprocessed(test, "test")?);
    let recipes = options.recipes(&train, &target);
    if let Some(folder) = &options.save_rows {
        std::fs::create_dir_all(folder)?;
        for (name, rows) in [("train", &train), ("valid", &valid), ("test", &test)] {
            save_rows(&folder.join(format!("{name}.safetensors")), &preprocessing, target.name(), rows)?;
        }
    }

    // Training.
    let (planned_peak_bytes, loader_rows_per_s) = {
        let model = TabularModel::new(options.seed, preprocessing.clone(), target.clone(), recipes[0].network.clone());
        let (task, params) = (model.task(), model.model().params());
        print::note(format_args!("parameters: {}", thousands(params.n_trained() as u64)));
        let optimizer = Adam::new(params);
        let trainer = recipes[0].trainer(&device).precision(options.precision);
        let training = trainer.prepare(Trainable::new(model.model().module(), params, &optimizer), &*task, &train, &valid)?;
        training.warnings().iter().for_each(|warning| print::note(format_args!("warning: {warning}")));
        let [step, evaluation] = training.graphs();
        let probe = FeedProbe::new(&device, training.train_rows(), training.scale())?;
        (Graph::planned_peak_bytes(&[step, evaluation])?, probe.rows_per_s()?)
    };
    let max_time = options.time_left(started.elapsed());
    ensure!(
        max_time.is_none_or(|left| !left.is_zero()),
        "`--minutes {}` was over after {}, before training began; allow more time",
        options.minutes.unwrap_or_default(),
        seconds(started.elapsed().as_secs_f64())
    );
    let n_networks = recipes.len();
    let configure = |trainer: Trainer<'static>, network: usize| {
        if n_networks > 1 {
            print::note(format_args!("network {} of at most {n_networks}", network + 1));
        }
        trainer.stop_on(&stop).progress()
    };
    let (precision, configure) = (options.precision, Box::new(configure));
    let fitting = Fitting { max_time, precision, configure, ..Fitting::new(recipes, options.seed) };
    let fitted = match fitting.fit(&device, preprocessing, target, &train, &valid) {
        Ok(fitted) => fitted,
        Err(TabularError::Train(error)) => return stopped::without_results(error.into(), &stop, StartedBy::CommandLine),
        Err(error) => return Err(error.into()),
    };
    let report = fitted.report().clone();
    let is_stopped = fitted.reports.iter().any(|report| report.ended == Ended::Stopped);
    let Fitted { mut model, reports, weights, .. } = fitted;
    model.set_text_options(detected.text.clone());
    let n_parameters = model.model().params().n_trained();
    if report.n_epochs == 0 && report.ended == Ended::MaxTime {
        print::note(format_args!(
            "warning: the time was over before one epoch, so that the network has seen only some of the training rows; allow more `--minutes`, or choose `--effort quick`"
        ));
    }
    let share = model.calibration().map_or(0.0, |calibration| calibration.constant_share);
    if share > 0.0 {
        print::note(format_args!(
            "warning: on the validation rows, the log loss of the network was not better than that of the shares of the classes, so that predictions are {:.0} % these shares",
            100.0 * share
        ));
    }

    // The results.
    let (scores, trivial) = (model.evaluate(&test)?, model.evaluate_constant(&train, &test)?);
    model.set_scores(scores.values.iter().map(|(name, value)| (format!("test_{name}"), *value)).collect());
    model.save(&options.out)?;
    let elapsed = started.elapsed().as_secs_f64();
    if let Some(path) = &options.json {
        let mut results = json!({
            "device": device.info().to_string(), "executor": device.info().kind.executor(), "seed": options.seed,
            "rows": table.n_rows(), "epochs": report.n_epochs, "best_epoch": report.best_epoch, "seconds": elapsed,
            "train_seconds": reports.iter().map(|report| report.train_seconds).sum::<f64>(), "weights": weights, "loader_rows_per_s": loader_rows_per_s,
            "train_rows_per_s": report.train_rows_per_s, "planned_peak_bytes": planned_peak_bytes,
            "precision": options.precision.to_string(), "simulated": false, "parameters": n_parameters,
            "target": model.target().name(), "task": model.target().kind().to_string(), "ended": report.ended.to_string(),
            "model_folder": options.out.to_string_lossy(),
            "warnings": detected.warnings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        });
        for (prefix, scores) in [("test", &scores), ("trivial", &trivial)] {
            scores.values.iter().for_each(|(name, value)| results[format!("{prefix}_{name}")] = Value::from(*value));
        }
        if let Some(calibration) = model.calibration() {
            results["temperature"] = json!(calibration.temperature);
            results["constant_share"] = json!(calibration.constant_share);
        }
        write_json(path, &results)?;
    }
    print::result(score_table(&model, &scores, &trivial))?;
    let units = if model.target().classes().is_empty() { " of the standardised target" } else { "" };
    let mut lines = vec![
        ("epochs", format!("{}, {}", report.n_epochs, report.ended)),
        ("best epoch", format!("{}, {} {}{units}", report.best_epoch, report.watched, number(report.best_value))),
        ("training", format!("{} rows/s", rows_per_second(report.train_rows_per_s))),
        ("memory", mebibytes(planned_peak_bytes as u64)),
        ("time", seconds(elapsed)),
        ("model", printable(&options.out).to_string()),
    ];
    if reports.len() > 1 {
        let n_kept = weights.iter().filter(|&&weight| weight > 0.0).count();
        lines.insert(0, ("networks", format!("{} trained, {n_kept} kept; the one with the greatest weight:", reports.len())));
    }
    if let Some(calibration) = model.calibration() {
        lines.insert(lines.len() - 1, ("temperature", format!("{:.3}", calibration.temperature)));
    }
    print::result(brisk_report::closing_table(&lines))?;
    Ok(if is_stopped { stopped::status(&stop, ExitCode::SUCCESS) } else { ExitCode::SUCCESS })
}

/// Checks the options as far as possible before any rows are read.
fn check(options: &Options, given: &[Given]) -> Result<()> {
    let has_hidden = given.iter().any(|option| option == "hidden");
    ensure!(
        !has_hidden || options.model != Some(Kind::ResidualMlp),
        "`--hidden` has no effect on `--model resnet`; leave it out"
    );
    ensure!(
        options.members.is_none() || options.has_members(),
        "`--members` has an effect on ensembles only; leave it out, or choose `--model tabm`"
    );
    ensure!(options.data.exists(), "{}: cannot open the table: there is no such file", printable(&options.data));
    check_folder("--out", &options.out)?;
    options.save_rows.as_deref().map_or(Ok(()), |folder| check_folder("--save-rows", folder))?;
    let Some(json) = options.json.as_deref() else { return Ok(()) };
    check_files_differ(&[("--json", json)], &[("DATA", &options.data)])?;
    check_output("--json", json)
}

/// The table, and what its columns are.
fn detect(options: &Options, stop: &StopFlag) -> Result<Detected> {
    let Options { data, target, task, drop, categorical, keep_index, text, .. } = options;
    let [drop, categorical] = [drop, categorical].map(|columns| columns.clone().unwrap_or_default());
    let text = text.added_to(&TextOptions::default());
    let how = DetectOptions { target: target.clone(), task: *task, drop, categorical, keep_index: *keep_index, text };
    read(data, Program::Tabular, stop, |progress| TabularModel::detect_with_progress(data, &how, progress))
}

/// 70 % to train on, 10 % to validate, 20 % to test; of each class, if there are classes.
fn split_rows<'a>(table: &'a Table, target: &Target, seed: u64) -> Result<[Subset<&'a Table>; 3]> {
    const FRACTIONS: [f64; 3] = [0.7, 0.1, 0.2];
    let parts = match target {
        Target::Classes { .. } => stratified_split(table, &labels_of(table)?, seed, FRACTIONS)?,
        Target::Number { .. } => split(table, seed, FRACTIONS)?,
    };
    ensure!(parts.iter().all(|part| part.n_rows() > 0), "{} rows are too few to train, validate and test on", table.n_rows());
    Ok(parts)
}

/// "1 category", "2 categories".
fn counted(n: usize, one: &str, several: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { several })
}

fn described(target: &Target) -> String {
    match target {
        Target::Classes { classes, .. } => {
            const SHOWN: usize = 5;
            let shown: Vec<_> = classes.iter().take(SHOWN).map(|class| printable(class).to_string()).collect();
            let more = if classes.len() > SHOWN { ", …" } else { "" };
            format!("{} classes: {}{more}", classes.len(), shown.join(", "))
        }
        Target::Number { offset, mean, std, .. } => {
            // As many digits as f32 has; the offset may have more.
            let (mean, std) = (offset + f64::from(*mean as f32), *std as f32);
            format!("a number, mean {mean}, standard deviation {std}")
        }
    }
}

/// The test scores next to those of a constant prediction.
fn score_table(model: &TabularModel, scores: &Scores, trivial: &Scores) -> String {
    let constant = if model.target().classes().is_empty() { "mean of the training rows" } else { "shares of the classes" };
    let network = model.network().kind();
    let mut table = format!("{:<12}{network:>14}   {constant}\n", "test");
    for ((name, value), (_, trivial)) in scores.values.iter().zip(&trivial.values) {
        table += &format!("{name:<12}{:>14}   {}\n", number(*value), number(*trivial));
    }
    table
}

/// Four decimals, or less for large numbers; small ones by their first three digits.
fn number(value: f64) -> String {
    match value.abs() {
        1000.0.. => format!("{value:.1}"),
        size if size > 0.0 && size < 0.001 => format!("{value:.2e}"),
        _ => format!("{value:.4}"),
    }
}

fn save_rows(path: &Path, preprocessing: &Preprocessing, target: &str, rows: &Rows) -> Result<()> {
    let categories = preprocessing.categories().iter().map(|column| column.name().to_owned()).collect();
    let label_names = vec![target.to_owned()];
    let mut writer =
        TableWriter::create(path, Schema { categories, label_names, ..Schema::named(preprocessing.feature_names()) })?;
    writer.push_batch(RowBatch {
        features: rows.features(),
        categories: rows.categories(),
        labels: rows.labels(),
        ..RowBatch::default()
    })?;
    if rows.n_categories() > 0 {
        writer.set_dictionaries(preprocessing.categories().to_vec())?;
    }
    writer.finish()?;
    Ok(())
}
